use crate::{floats, values};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tt::{Error, FunctionCall, HookGuard, Module, Result, Status, Tensor};

fn leaf(v: &[f32]) -> Tensor {
    floats(v).requires_grad_(true).unwrap()
}

#[test]
fn a_poll_ends_a_call() {
    tt::ctx_set_poll(|| Err(Error::new(Status::Callback, "enough"))).unwrap();
    let failed = tt::zeros(&[2]).and_then(|x| x.exp()).unwrap_err();
    tt::ctx_set_poll(|| Ok(())).unwrap();
    assert_eq!(failed.cause.as_ref().unwrap().message, "enough", "{failed:?}");
    assert!(tt::zeros(&[2]).unwrap().exp().is_ok());
}

#[test]
fn hooks_see_and_replace_gradients() -> Result<()> {
    let (x, seen) = (leaf(&[1.0, 2.0]), Arc::new(Mutex::new(vec![])));
    let also = seen.clone();
    x.register_hook(move |g| {
        also.lock().unwrap().push(values(g)?);
        Ok(Some(g * 10.0))
    })?;
    let after = Arc::new(AtomicI64::new(0));
    let count = after.clone();
    let id = x.register_accumulate_hook(move |leaf| {
        assert!(leaf.grad()?.is_some());
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })?;
    (&x * 3.0).sum()?.backward()?;
    assert_eq!(
        (values(&x.grad()?.unwrap())?, seen.lock().unwrap().clone()),
        (vec![30.0, 30.0], vec![vec![3.0, 3.0]])
    );
    x.remove_hook(id)?;
    (&x * 3.0).sum()?.backward()?;
    assert_eq!(after.load(Ordering::Relaxed), 1);
    let y = &x * 2.0;
    let node = y.grad_fn()?.unwrap();
    assert_eq!(node.num_inputs(), 1);
    node.register_hook(true, |grads| Ok(vec![Some(grads[0].as_ref().unwrap() * 0.0)]))?;
    x.set_grad(None)?;
    y.sum()?.backward()?;
    assert_eq!(values(&x.grad()?.unwrap())?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn a_hook_may_remove_itself() -> Result<()> {
    let x = leaf(&[1.0]);
    let (id, data, same) = (Arc::new(AtomicI64::new(0)), vec![7; 1000], x.clone());
    let own = id.clone();
    let n = x.register_hook(move |_| {
        same.remove_hook(own.load(Ordering::Relaxed))?;
        assert!(data.iter().all(|v| *v == 7)); // still valid
        Ok(None)
    })?;
    id.store(n, Ordering::Relaxed);
    x.sum()?.backward()?;
    assert!(x.remove_hook(n).is_err());
    Ok(())
}

#[test]
fn panics_become_errors_and_resume_where_requested() -> Result<()> {
    let x = leaf(&[1.0]);
    x.register_hook(|_| panic!("a hook of mine"))?;
    let e = x.sum()?.backward().unwrap_err();
    assert_eq!((e.status, e.panic_message()), (Status::Callback, Some("a hook of mine")));
    assert_eq!(e.cause.as_ref().unwrap().message, "a hook of mine");
    let payload = e.into_panic().unwrap();
    let again = catch_unwind(std::panic::AssertUnwindSafe(|| std::panic::resume_unwind(payload)))
        .unwrap_err();
    assert_eq!(*again.downcast_ref::<&str>().unwrap(), "a hook of mine");
    let plain = floats(&[1.0]).reshape(&[2]).unwrap_err();
    assert!(
        plain.panic_message().is_none() && plain.into_panic().unwrap_err().status == Status::Shape
    );
    Ok(())
}

#[test]
fn inner_errors_are_causes() -> Result<()> {
    let m = Module::from_fn("Reshape", |x| x.reshape(&[7]))?;
    let net = tt::sequential([tt::nn::relu()?, m])?;
    let e = net.call(&floats(&[1.0])).unwrap_err();
    let cause = e.cause.as_ref().unwrap();
    assert_eq!(
        (e.status, cause.status, cause.op.as_str()),
        (Status::Callback, Status::Shape, "reshape")
    );
    let m = Module::from_fn("Io", |_| {
        Err(Error::other(std::io::Error::new(std::io::ErrorKind::Other, "no disk")))
    })?;
    let e = m.call(&floats(&[1.0])).unwrap_err();
    assert_eq!(
        std::error::Error::source(e.cause.as_ref().unwrap()).unwrap().to_string(),
        "no disk"
    );
    assert!(format!("{:?}", e).contains("caused by Callback: no disk"));
    let deep =
        Module::from_fn("Deep", |x| Module::from_fn("Deeper", |_| panic!("far down"))?.call(x))?;
    let e = deep.call(&floats(&[1.0])).unwrap_err();
    assert_eq!(e.panic_message(), Some("far down"));
    assert!(floats(&[1.0]).exp()?.is_leaf()); // and no state of the failure remains
    assert!(floats(&[1.0]).reshape(&[3]).unwrap_err().cause.is_none());
    Ok(())
}

struct Scale(f64);
impl tt::Function for Scale {
    fn name(&self) -> &str {
        "Scale"
    }
    fn forward(
        &self,
        call: &FunctionCall,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        let x = inputs[0].as_ref().unwrap();
        call.save(&[x])?;
        assert!(self.0 != 13.0, "thirteen");
        Ok(vec![Some(x * self.0), Some(x + 1)])
    }
    fn backward(
        &self,
        call: &FunctionCall,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        assert_eq!(call.saved(0)?.numel(), 2);
        assert!(self.0 != 7.0, "seven");
        Ok(vec![grads[0].as_ref().map(|g| g * self.0)])
    }
}

#[test]
fn custom_functions() -> Result<()> {
    let x = leaf(&[1.0, 2.0]);
    let outs = tt::apply(Scale(5.0), &[&x], 2)?;
    assert_eq!((values(&outs[0])?, values(&outs[1])?), (vec![5.0, 10.0], vec![2.0, 3.0]));
    assert_eq!(outs[0].grad_fn()?.unwrap().name(), "Scale");
    outs[0].sum()?.backward()?;
    assert_eq!(values(&x.grad()?.unwrap())?, [5.0, 5.0]);
    assert_eq!(tt::apply(Scale(13.0), &[&x], 2).unwrap_err().panic_message(), Some("thirteen"));
    let e = tt::apply(Scale(7.0), &[&x], 2)?[0].sum()?.backward().unwrap_err();
    assert_eq!(e.panic_message(), Some("seven"));
    // It returns two results for one.
    assert_eq!(tt::apply(Scale(1.0), &[&x], 1).unwrap_err().status, Status::Callback);
    Ok(())
}

/// The same, with tangents 10 times too large and 100 added in vmap, so that the rules show.
struct Ruled;
impl tt::Function for Ruled {
    fn forward(&self, call: &FunctionCall, x: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let x = x[0].as_ref().unwrap();
        call.save(&[x])?;
        Ok(vec![Some(x * 2.0)])
    }
    fn backward(&self, _: &FunctionCall, g: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![g[0].as_ref().map(|g| g * 2.0)])
    }
    const HAS_JVP: bool = true;
    fn jvp(&self, call: &FunctionCall, t: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        assert_eq!(values(&call.saved(0)?)?, [1.0, 2.0]);
        Ok(vec![t[0].as_ref().map(|t| t * 20.0)])
    }
    const HAS_VMAP: bool = true;
    fn vmap(
        &self,
        _: &FunctionCall,
        size: i64,
        samples: &[Option<Tensor>],
        shared: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        let all = samples[0].as_ref().unwrap();
        assert!(shared[0].is_none() && all.shape()[0] == size);
        Ok(vec![Some(all * 2.0 + 100.0)])
    }
}

#[test]
fn rules_of_functions_in_transforms() -> Result<()> {
    let x = floats(&[1.0, 2.0]);
    let f = |x: &[Tensor]| tt::apply(Ruled, &[&x[0]], 1);
    let (outs, tangents) = tt::jvp(f, &[&x], &[Some(&x)])?;
    assert_eq!(values(&outs[0])?, [2.0, 4.0]);
    assert_eq!(values(tangents[0].as_ref().unwrap())?, [20.0, 40.0]);
    assert_eq!(values(&tt::vmap(f, &[&x], &[Some(0)])?[0])?, [102.0, 104.0]);
    let x = leaf(&[1.0, 2.0]);
    f(&[x.clone()])?[0].sum()?.backward()?;
    assert_eq!(values(&x.grad()?.unwrap())?, [2.0, 2.0]);
    Ok(())
}

#[test]
fn custom_modules() -> Result<()> {
    let residual = Module::custom("Residual", |m, x| {
        let x = x[0].as_ref().unwrap();
        assert!(!m.training() || m.num_children() == 1);
        Ok(vec![m.get_submodule("fc")?.call(x)? + x * m.get_tensor("scale")?.unwrap()])
    })?;
    residual.register_module("fc", &tt::nn::linear(2, 2)?)?;
    residual.register_parameter("scale", Some(&floats(&[2.0])))?;
    residual.register_buffer("seen", Some(&floats(&[0.0])), false)?;
    let net = tt::sequential([residual, tt::nn::relu()?])?;
    assert_eq!(net.state_dict()?.names(), ["0.scale", "0.fc.weight", "0.fc.bias"]);
    assert_eq!(net.named_buffers()?.names(), ["0.seen"]);
    let y = net.call(&tt::ones(&[3, 2])?)?;
    assert_eq!(y.shape(), [3, 2]);
    assert!(net.to_string().contains("(0): Residual("), "{}", net);
    assert_eq!(net.child(0)?.class(), "Residual");
    let copy = net.copy()?;
    net.zero_grad()?;
    assert_eq!(copy.parameters()?.len(), 3);
    assert_eq!(
        Module::from_fn("One", |x| Ok(x.clone()))?.forward_list(&[&y, &y]).unwrap_err().status,
        Status::Callback
    );
    Ok(())
}

#[test]
fn guards_remove_their_hooks() -> Result<()> {
    let (x, m) = (leaf(&[1.0]), tt::nn::relu()?);
    let gradient = || -> Result<Vec<f32>> {
        x.set_grad(None)?;
        x.sum()?.backward()?;
        values(&x.grad()?.unwrap())
    };
    let doubled = |grad: &Tensor| Ok(Some(grad * 2.0));
    {
        let _guard = HookGuard::new(&x, x.register_hook(doubled)?);
        assert_eq!(gradient()?, [2.0]);
    }
    assert_eq!(gradient()?, [1.0]);
    HookGuard::new(&x, x.register_hook(doubled)?).remove()?;
    assert_eq!(gradient()?, [1.0]);
    let id = HookGuard::new(&x, x.register_hook(doubled)?).keep();
    assert_eq!(gradient()?, [2.0]);
    x.remove_hook(id)?;
    assert!(HookGuard::new(&x, id).remove().is_err());

    let guard = HookGuard::new(&m, m.register_forward_hook(|_, _, _| Ok(vec![None]))?);
    guard.remove()?;
    assert_eq!(values(&m.call(&x)?)?, [1.0]);
    Ok(())
}

#[test]
fn module_hooks() -> Result<()> {
    let m = tt::nn::relu()?;
    let pre = m.register_forward_pre_hook(|m, x| {
        assert_eq!(m.class(), "ReLU");
        Ok(vec![Some(x[0].as_ref().unwrap() - 1.0)])
    })?;
    m.register_forward_hook(|_, x, y| {
        assert_eq!((x.len(), y.len()), (1, 1));
        Ok(vec![Some(y[0].as_ref().unwrap() * 2.0)])
    })?;
    assert_eq!(values(&m.call(&floats(&[0.5, 3.0]))?)?, [0.0, 4.0]);
    m.remove_hook(pre)?;
    assert_eq!(values(&m.call(&floats(&[0.5, 3.0]))?)?, [1.0, 6.0]);
    m.register_forward_hook(|_, _, y| Ok(vec![None; y.len() + 1]))?;
    assert!(m
        .call(&floats(&[1.0]))
        .unwrap_err()
        .cause
        .as_ref()
        .unwrap()
        .message
        .contains("at most 1"));
    Ok(())
}

#[test]
fn module_backward_hooks() -> Result<()> {
    let (m, x) = (tt::nn::relu()?, leaf(&[-1.0, 3.0]));
    m.register_full_backward_pre_hook(|_, grads| {
        Ok(vec![Some(grads[0].as_ref().unwrap() * 10.0)])
    })?;
    let id = m.register_full_backward_hook(|m, grad_outputs, grad_inputs| {
        assert_eq!((m.class().as_str(), grad_outputs.len()), ("ReLU", 1));
        Ok(vec![Some(grad_inputs[0].as_ref().unwrap() + 1.0)])
    })?;
    m.call(&x)?.sum()?.backward()?;
    assert_eq!(values(&x.grad()?.unwrap())?, [1.0, 11.0]);
    m.remove_hook(id)?;
    m.register_full_backward_hook(|_, _, grad_inputs| Ok(vec![None; grad_inputs.len() + 1]))?;
    assert!(m.call(&x)?.sum()?.backward().is_err());
    Ok(())
}

#[test]
fn module_hooks_run_where_they_were_registered() -> Result<()> {
    let (m, x) = (tt::nn::linear(2, 2)?, floats(&[1.0, 2.0]));
    let backward = |loss: Tensor| thread::spawn(move || loss.backward()).join().unwrap();
    let forward = m.register_forward_hook(|_, _, _| Ok(vec![]))?;
    backward(m.call(&x)?.sum()?)?;
    let post = m.register_full_backward_hook(|_, _, _| Ok(vec![]))?;
    m.call(&x)?.sum()?.backward()?;
    let e = backward(m.call(&x)?.sum()?).unwrap_err();
    assert_eq!((e.status, e.cause.as_ref().unwrap().status), (Status::Callback, Status::Callback));
    assert!(
        e.cause.as_ref().unwrap().message.contains("belongs to the thread that registered it"),
        "{:?}",
        e
    );
    m.remove_hook(post)?;
    m.register_full_backward_pre_hook(|_, _| Ok(vec![]))?;
    assert!(backward(m.call(&x)?.sum()?).is_err());
    let moved = unsafe { tt::Transfer::new(m) };
    thread::spawn(move || -> Result<()> {
        let m = moved.into_inner();
        assert!(m.call(&x)?.sum()?.backward().is_err()); // registered on the other thread
        let m = m.copy()?; // without hooks
        let seen = Arc::new(AtomicI64::new(0));
        let also = seen.clone();
        m.register_full_backward_hook(move |_, _, _| {
            also.fetch_add(1, Ordering::Relaxed);
            Ok(vec![])
        })?;
        m.call(&x)?.sum()?.backward()?;
        assert_eq!((seen.load(Ordering::Relaxed), m.remove_hook(forward + 99).is_err()), (1, true));
        Ok(())
    })
    .join()
    .unwrap()
}

struct PanicsWhenDropped;
impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("in a drop")
        }
    }
}
impl std::fmt::Debug for PanicsWhenDropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PanicsWhenDropped")
    }
}
impl std::fmt::Display for PanicsWhenDropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it panics when dropped")
    }
}
impl std::error::Error for PanicsWhenDropped {}

#[test]
fn panics_of_drops_stay_in_rust() -> Result<()> {
    let kept = PanicsWhenDropped;
    let x = leaf(&[1.0]);
    let id = x.register_hook(move |_| {
        let _kept = &kept;
        Ok(None)
    })?;
    x.remove_hook(id)?;
    let twice = Module::custom("Twice", |_, x| {
        let fails = |_: &Tensor| -> Result<Tensor> { Err(Error::other(PanicsWhenDropped)) };
        let inner = Module::from_fn("Inner", fails)?;
        std::mem::forget(inner.call(x[0].as_ref().unwrap()).unwrap_err());
        Err(Error::other(PanicsWhenDropped))
    })?;
    std::mem::forget(twice.call(&x).unwrap_err());
    assert!(catch_unwind(|| drop(Error::other(PanicsWhenDropped))).is_err());
    Ok(())
}

/// A packed form of a saved tensor, which counts its live instances.
struct Kept(Tensor, Arc<AtomicI64>);
impl Kept {
    fn new(t: &Tensor, alive: &Arc<AtomicI64>) -> Kept {
        alive.fetch_add(1, Ordering::Relaxed);
        Kept(t.clone(), alive.clone())
    }
}
impl Drop for Kept {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn hooks_on_saved_tensors() -> Result<()> {
    let (x, alive) = (leaf(&[2.0, 3.0]), Arc::new(AtomicI64::new(0)));
    let count = alive.clone();
    let pack = move |t: &Tensor| Ok(Kept::new(t, &count));
    let y = tt::saved_tensors_hooks(pack, |kept: &Kept| kept.0.mul_scalar(10), || x.mul(&x))?;
    assert_eq!(alive.load(Ordering::Relaxed), 2);
    let z = x.mul(&x)?; // outside the scope: not packed
    assert_eq!(alive.load(Ordering::Relaxed), 2);
    thread::spawn(move || y.sum()?.backward()).join().unwrap()?;
    assert_eq!(values(&x.grad()?.unwrap())?, [40.0, 60.0]);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    let by_x = tt::grad(&[z.sum()?], &[&x], Default::default())?;
    assert_eq!(values(by_x[0].as_ref().unwrap())?, [4.0, 6.0]);
    Ok(())
}

#[test]
fn failing_hooks_on_saved_tensors() -> Result<()> {
    let x = leaf(&[2.0]);
    let same = |t: &Tensor| Ok(t.clone());
    let unpacked = |pack: fn(&Tensor) -> Result<Tensor>, unpack: fn(&Tensor) -> Result<Tensor>| {
        tt::saved_tensors_hooks(pack, unpack, || x.mul(&x))
    };
    let failed = unpacked(|_| panic!("in pack"), |t| Ok(t.clone())).unwrap_err();
    assert_eq!(failed.panic_message(), Some("in pack"));
    let y = unpacked(same, |_| panic!("in unpack"))?;
    assert_eq!(y.sum()?.backward().unwrap_err().panic_message(), Some("in unpack"));
    let y = unpacked(same, |_| tt::ones(&[2, 2]))?;
    assert_eq!(y.sum()?.backward().unwrap_err().status, Status::Callback);
    let out = catch_unwind(|| tt::saved_tensors_hooks(same, same, || -> Result<()> { panic!() }));
    assert!(out.is_err()); // and the scope has ended:
    x.mul(&x)?.sum()?.backward()?;
    assert_eq!(values(&x.grad()?.unwrap())?, [4.0]);
    Ok(())
}

#[test]
fn closures_of_optimizers_and_schedules() -> Result<()> {
    let w = leaf(&[3.0]);
    let sgd = tt::optim::sgd_with([&w], tt::optim::SgdOpts::new().lr(0.25))?;
    let steps = std::cell::Cell::new(0);
    let loss = sgd.step_closure(|| {
        steps.set(steps.get() + 1);
        sgd.zero_grad(true)?;
        let loss = (&w * &w).sum()?;
        loss.backward()?;
        Ok(loss)
    })?;
    assert_eq!((loss.item::<f32>()?, values(&w)?, steps.get()), (9.0, vec![1.5], 1));
    assert_eq!(
        sgd.step_closure(|| panic!("in the closure")).unwrap_err().panic_message(),
        Some("in the closure")
    );
    let halving = sgd.lr_lambda(|epoch, group| Ok(0.5f64.powi((epoch + group) as i32)), -1)?;
    sgd.step()?;
    halving.step()?;
    assert_eq!((halving.get_last_lr()?, halving.last_epoch()), (vec![0.125], 1));
    let bad =
        sgd.lr_multiplicative(|epoch, _| if epoch > 0 { panic!("late") } else { Ok(1.0) }, -1)?;
    assert_eq!(bad.step().unwrap_err().panic_message(), Some("late"));
    Ok(())
}

struct Again(Arc<Mutex<Option<Tensor>>>);
impl Drop for Again {
    fn drop(&mut self) {
        let loss = self.0.lock().unwrap().take();
        assert!(loss.map_or(true, |y| y.backward().is_err()));
    }
}

#[test]
fn what_a_backward_drops_may_run_backward() -> Result<()> {
    let (m, x, loss) = (tt::nn::relu()?, leaf(&[1.0]), Arc::new(Mutex::new(None)));
    let again = Again(loss.clone());
    m.register_full_backward_hook(move |_, _, _| {
        let _kept = &again;
        Ok(vec![])
    })?;
    let y = m.call(&x)?.sum()?;
    *loss.lock().unwrap() = Some(y.clone());
    drop(m); // the graph owns it and releases it in backward
    y.backward()?;
    assert!(loss.lock().unwrap().is_none());
    Ok(())
}
