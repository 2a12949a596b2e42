//! Performs random operations of safe code on several threads. They share tensors, nodes,
//! generators and state dicts, and have their own modules, optimizers and schedulers. Closures
//! (hooks, functions, operators, traces, polls, drops) do the same. Calls may fail, but none may
//! end the process (the README runs it on a libtt with sanitizers).
//! TT_TORTURE=seed,seconds,threads.
#![forbid(unsafe_code)]
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tt::graph::{self, Arg, Graph, Passes};
use tt::opts::{BackwardOpts, GradOpts, ModuleLoadStateDictOpts};
use tt::{
    lr, nn, optim, Cancel, Checkpoint, Compiled, Context, Error, FunctionCall, Generator,
    Layer as _, Module, Node, Optimizer, Result,
};
use tt::{Runtime, RuntimeOpts, Scheduler, SharedModule, StateDict, Status, Tensor, Value};

const ROOM: usize = 24;
const DEEP: u32 = 3;

/// State shared by all threads.
struct Shared {
    tensors: Mutex<Vec<Tensor>>,
    nodes: Mutex<Vec<Node>>,
    states: Mutex<Vec<StateDict>>,
    frozen: Mutex<Vec<SharedModule>>,
    graphs: Mutex<Vec<Arc<Graph>>>,
    generator: Generator,
    cancel: Cancel,
    calls: AtomicI64,
}

/// State of one thread, also accessible to its closures.
struct Own {
    random: Cell<u64>,
    depth: Cell<u32>,
    shared: RefCell<Option<Arc<Shared>>>,
    modules: RefCell<Vec<Module>>,
    optimizers: RefCell<Vec<Optimizer>>,
    schedulers: RefCell<Vec<Scheduler>>,
    compiled: RefCell<Vec<Rc<Compiled>>>,
}
thread_local! {
    static OWN: Own = const { Own {
        random: Cell::new(0), depth: Cell::new(0), shared: RefCell::new(None),
        modules: RefCell::new(vec![]), optimizers: RefCell::new(vec![]),
        schedulers: RefCell::new(vec![]), compiled: RefCell::new(vec![]),
    } };
}

fn random(n: usize) -> usize {
    OWN.try_with(|o| {
        let mut x = o.random.get() | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        o.random.set(x);
        (x >> 11) as usize % n.max(1)
    })
    .unwrap_or(0)
}
fn often(n: usize) -> bool {
    random(n) != 0
}
fn one_of<T: Clone>(list: &[T]) -> Option<T> {
    (!list.is_empty()).then(|| list[random(list.len())].clone())
}
fn put<T>(list: &mut Vec<T>, item: T) -> Option<T> {
    if list.len() < ROOM {
        list.push(item);
        return None;
    }
    let at = random(list.len());
    Some(std::mem::replace(&mut list[at], item))
}
fn shared() -> Result<Arc<Shared>> {
    let shared =
        OWN.try_with(|o| o.shared.try_borrow().ok().and_then(|s| s.clone())).ok().flatten();
    shared.ok_or_else(|| Error::new(Status::InvalidArg, "outside of the torture"))
}
// Locks are released before anything is dropped: drops perform operations, too.
fn tensor() -> Result<Tensor> {
    let tensor = one_of(&shared()?.tensors.lock().unwrap());
    if let (Some(t), true) = (tensor, often(8)) {
        return Ok(t);
    }
    fresh()
}
fn give(t: Tensor) -> Result<()> {
    let old = put(&mut shared()?.tensors.lock().unwrap(), t);
    drop(old);
    Ok(())
}
fn give_all(list: impl IntoIterator<Item = Tensor>) -> Result<()> {
    list.into_iter().try_for_each(give)
}
macro_rules! owned {
    ($get:ident, $keep:ident, $field:ident, $t:ty) => {
        fn $get() -> Result<$t> {
            let item = OWN.try_with(|o| one_of(&o.$field.borrow())).ok().flatten();
            item.ok_or_else(|| Error::new(Status::InvalidArg, "there is none"))
        }
        fn $keep(item: $t) -> Result<()> {
            let old = OWN.try_with(|o| put(&mut o.$field.borrow_mut(), item)).ok();
            drop(old);
            Ok(())
        }
    };
}
owned!(module, keep_module, modules, Module);
owned!(optimizer, keep_optimizer, optimizers, Optimizer);
owned!(scheduler, keep_scheduler, schedulers, Scheduler);
owned!(compiled, keep_compiled, compiled, Rc<Compiled>);

fn shape() -> &'static [i64] {
    [&[2, 3][..], &[2, 3], &[3], &[], &[4, 2, 3], &[0], &[1, 3], &[3, 3], &[2, 2, 4, 4], &[40, 40]]
        [random(10)]
}
fn fresh() -> Result<Tensor> {
    let t = match random(8) {
        6 => Tensor::from([[0.5f32, -1.0, 2.0], [1.0, 0.0, -0.5]]),
        7 => Tensor::from(random(3) as i64),
        0 => tt::randn_with(shape(), tt::opts::RandnOpts::new().generator(&shared()?.generator))?,
        1 => tt::randint(0, 3, shape())?,
        2 => tt::zeros_with(shape(), tt::opts::ZerosOpts::new().dtype(tt::DType::F64))?,
        3 => Tensor::from_vec(vec![1.5f32; 6], &[2, 3])?,
        _ => tt::ones(shape())?,
    };
    let t = if random(3) == 0 { t } else { t.requires_grad_(true)? };
    give(t.clone())?;
    Ok(t)
}

/// Owned by closures: its drop runs concurrently, too.
struct Last;
impl Drop for Last {
    fn drop(&mut self) {
        if random(3) == 0 && !std::thread::panicking() {
            act();
        }
    }
}
/// What a closure does before it returns a result.
fn inside(_kept: &Last) -> Result<()> {
    if random(3) == 0 {
        act();
    }
    match random(40) {
        0 => Err(Error::new(Status::InvalidArg, "as it likes")),
        1 => panic!("as it likes"),
        _ => Ok(()),
    }
}
fn replacement(like: Option<&Tensor>) -> Option<Tensor> {
    match random(6) {
        0 => like.and_then(|t| t.mul_scalar(0.5).ok()),
        1 => tensor().ok(),
        2 => like.cloned(),
        _ => None,
    }
}
fn replacements(like: &[Option<Tensor>]) -> Vec<Option<Tensor>> {
    match random(8) {
        0..=3 => vec![],
        4 => vec![tensor().ok(); random(4)],
        _ => like.iter().map(|t| replacement(t.as_ref())).collect(),
    }
}

struct Double(Last);
impl tt::Function for Double {
    fn forward(
        &self,
        call: &FunctionCall,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        inside(&self.0)?;
        let x = inputs[0].clone().unwrap();
        call.save(&[&x])?;
        if random(8) == 0 {
            let _ = call.saved(random(3) as i64 - 1);
        }
        Ok(vec![Some(if often(3) { &x * 2.0 } else { x })])
    }
    fn backward(
        &self,
        call: &FunctionCall,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        inside(&self.0)?;
        let saved = call.saved(random(5) as i64 / 4)?;
        if random(8) == 0 {
            let _ = call.save(&[&saved, &saved]);
        }
        Ok(match random(5) {
            0 => vec![replacement(Some(&saved))],
            1 => vec![],
            _ => vec![grads[0].clone()],
        })
    }
}
struct HostOp(Last);
impl tt::Operator for HostOp {
    fn compute(&self, args: &[Value]) -> Result<Vec<Option<Tensor>>> {
        inside(&self.0)?;
        match (args, random(8)) {
            ([Value::Tensor(x)], 0) => Ok(vec![Some(x.clone())]),
            ([Value::Tensor(_)], 1) => Ok(vec![tensor().ok()]),
            ([Value::Tensor(_)], 2) => Ok(vec![]),
            ([Value::Tensor(x)], _) => Ok(vec![Some(x.mul_scalar(3.0)?)]),
            _ => Err(Error::new(Status::InvalidArg, "one tensor")),
        }
    }
    fn backward(
        &self,
        grads: &[Option<Tensor>],
        _: &[Value],
        _: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        inside(&self.0)?;
        Ok(replacements(grads))
    }
    fn differentiable(&self) -> bool {
        true
    }
}

fn compute() -> Result<()> {
    let (a, b) = (tensor()?, tensor()?);
    let y = match random(34) {
        30 => assigned(a, &b),
        31 => a.index_get(tt::idx![..=random(4), random(3)..])?,
        32 => a.index_get(tt::idx![-1..=-1i64, tt::Index::New, &b])?,
        33 => Tensor::from(a.item::<f64>()? + b.item::<f64>()?),
        24 => a.index_select(0, &b)?,
        25 => a.nonzero()?,
        26 => a.masked_select(&b.gt_scalar(0.0)?)?,
        27 => a.gather(-1, &b)?,
        28 => a.cross_entropy(&b)?,
        29 => a.embedding(&b)?,
        0 => a.add(&b)?,
        1 => a.mul(&b)?,
        2 => a.matmul(&b)?,
        3 => a.exp()?,
        4 => a.sum()?,
        5 => a.relu()?,
        6 => a.reshape(&[-1])?,
        7 => a.transpose(0, -1)?,
        8 => a.index_get(tt::idx![0])?,
        9 => a.index_get(tt::idx![
            tt::Index::Ellipsis,
            tt::Index::Slice { start: None, stop: None, step: 2 }
        ])?,
        10 => a.softmax(-1)?,
        11 => tt::cat(&[&a, &b, &a])?,
        12 => a.expand(&[4, 2, 3])?,
        13 => a.detach()?,
        14 => a.to_dtype(tt::DType::F64)?,
        15 => a.cumsum(0)?,
        16 => a.topk(1)?.0,
        17 => a.mse_loss(&b)?,
        18 => tt::apply(Double(Last), &[&a], 1)?.remove(0),
        19 => tt::Op::find("torture")?.call(&[Value::Tensor(a.clone())])?.remove(0),
        20 => a.maximum(&b)?,
        21 => a.dropout()?,
        22 => a.layer_norm(&[3], None, None)?,
        _ => a.sin()?,
    };
    give(y)
}

/// Assignment operators, which panic with the message of the error.
fn assigned(mut a: Tensor, b: &Tensor) -> Tensor {
    match random(5) {
        0 => a += b,
        1 => a -= b.clone(),
        2 => a *= 0.5,
        3 => a /= 2,
        _ => a = 1.0 - a * b,
    }
    a
}

fn differentiate() -> Result<()> {
    let (a, b) = (tensor()?, tensor()?);
    match random(16) {
        0..=4 => a.sum()?.backward()?,
        5 => a.backward()?,
        6 => a.sum()?.backward_with(BackwardOpts::new().retain_graph(true))?,
        7 => {
            a.sum()?.backward_with(BackwardOpts::new().create_graph(random(2) == 0).inputs(&[b]))?
        }
        8 => a.backward_with(BackwardOpts::new().gradient(&b))?,
        9 => tt::backward_all(&[a.sum()?, b.sum()?], &[None, None], BackwardOpts::new())?,
        10 => give_all(
            tt::grad(
                &[a.sum()?],
                &[&b],
                GradOpts::new().allow_unused(true).create_graph(random(2) == 0),
            )?
            .into_iter()
            .flatten(),
        )?,
        11 => give_all(a.grad()?)?,
        12 => a.set_grad(Some(&b))?,
        13 => a.set_grad(None)?,
        14 => a.retain_grad()?,
        _ => drop(a.requires_grad_(random(2) == 0)?),
    }
    Ok(())
}

fn hook() -> Result<()> {
    let (a, last, id) = (tensor()?, Last, random(4) as i64 + 1);
    match random(9) {
        0 | 1 => {
            a.register_hook(move |g| inside(&last).map(|_| replacement(Some(g)))).map(|_| ())?
        }
        2 => a.register_accumulate_hook(move |_| inside(&last)).map(|_| ())?,
        3 | 4 => a.remove_hook(id)?,
        5 => {
            if let Some(n) = a.grad_fn()? {
                let old = put(&mut shared()?.nodes.lock().unwrap(), n);
                drop(old);
            }
        }
        _ => {
            let node = one_of(&shared()?.nodes.lock().unwrap());
            let n = node.ok_or_else(|| Error::new(Status::InvalidArg, "no node"))?;
            match random(5) {
                0 | 1 => n
                    .register_hook(random(2) == 0, move |g| inside(&last).map(|_| replacements(g)))
                    .map(|_| ())?,
                2 => n.remove_hook(id)?,
                3 => drop((n.name(), n.num_inputs())),
                _ => {
                    if let Some(below) = n.next(random(3) as i64)? {
                        let old = put(&mut shared()?.nodes.lock().unwrap(), below);
                        drop(old);
                    }
                }
            }
        }
    }
    Ok(())
}

fn look() -> Result<()> {
    let a = tensor()?;
    match random(6) {
        0 => drop(a.print()?),
        1 => drop(a.to_dtype(tt::DType::F32)?.to_vec::<f32>()?),
        2 => assert!(
            a.shape().len() == a.strides().len()
                || a.is_leaf()
                || a.requires_grad()
                || a.version() > 0
                || a.is_view()
        ),
        3 => tt::memory(tt::Device::CPU).map(|_| ())?,
        4 => drop(format!("{:?}", a)),
        _ => {
            let old = shared()?.tensors.lock().unwrap().pop();
            drop(old);
        }
    }
    Ok(())
}

fn new_module() -> Result<Module> {
    let last = Last;
    Ok(match random(17) {
        16 => doubled(last)?.module()?,
        15 => tt::sequential![doubled(last)?, module()?, nn::relu()?]?,
        0..=2 => nn::linear(3, 3)?,
        3 => nn::conv2d(2, 2, &[3])?,
        4 => nn::batch_norm2d(2)?,
        5 => nn::batch_norm1d(3)?,
        6 => nn::dropout()?,
        7 => nn::embedding(3, 3)?,
        8 => nn::layer_norm(&[3])?,
        9 => nn::multihead_attention(3, 1)?,
        10 => nn::module_list()?,
        11 => Module::from_fn("F", move |x| {
            inside(&last).and_then(|_| if often(6) { x.relu() } else { tensor() })
        })?,
        12 => Module::custom("Custom", move |m, x| {
            inside(&last)?;
            let x = x.iter().flatten().next().cloned().map_or_else(tensor, Ok)?;
            Ok(match random(6) {
                0 => vec![],
                1 => vec![x.clone(), x],
                2 => vec![m.child(0)?.call(&x)?],
                _ => vec![x * m.get_tensor("scale")?.unwrap_or(tensor()?)],
            })
        })?,
        _ => tt::sequential((0..random(4)).filter_map(|_| module().ok()))?,
    })
}

fn hook_module(m: &Module) -> Result<()> {
    let (last, mut seen) = (Last, vec![]);
    match random(6) {
        0 => m.register_forward_pre_hook(move |m, x| {
            seen.push(x.first().cloned());
            if seen.len() > 2 {
                drop(std::mem::take(&mut seen));
            }
            hooked(m, &last).map(|_| replacements(x))
        }),
        1 => m.register_forward_hook(move |m, _, y| hooked(m, &last).map(|_| replacements(y))),
        2 => {
            m.register_full_backward_pre_hook(move |m, g| hooked(m, &last).map(|_| replacements(g)))
        }
        3 => {
            m.register_full_backward_hook(move |m, _, g| hooked(m, &last).map(|_| replacements(g)))
        }
        _ => return m.remove_hook(random(4) as i64 + 1),
    }
    .map(|_| ())
}
fn hooked(m: &Module, last: &Last) -> Result<()> {
    if random(4) == 0 {
        keep_module(m.clone())?;
    }
    if random(4) == 0 {
        let _ = change_module(m);
    }
    inside(last)
}

fn change_module(m: &Module) -> Result<()> {
    let slot =
        ["weight", "bias", "running_mean", "running_var", "num_batches_tracked", "scale", "own"]
            [random(7)];
    let child = ["0", "1", "2", "fc", "out_proj"][random(5)];
    match random(12) {
        0 => m.register_parameter(slot, if often(4) { Some(tensor()?) } else { None }.as_ref()),
        1 => m.register_buffer(
            slot,
            if often(4) { Some(tensor()?) } else { None }.as_ref(),
            random(2) == 0,
        ),
        2 => m.register_module(child, &module()?),
        3 => m.append(&module()?),
        4 => m.train(random(2) == 0),
        5 => m.requires_grad_(random(3) != 0),
        6 => m.zero_grad(),
        7 => {
            let state = one_of(&shared()?.states.lock().unwrap());
            m.load_state_dict_with(
                &state.map_or_else(|| m.state_dict(), Ok)?,
                ModuleLoadStateDictOpts::new().strict(random(2) == 0),
            )
        }
        _ => hook_module(m),
    }
}

fn modules() -> Result<()> {
    let m = match module() {
        Ok(m) if often(6) => m,
        _ => {
            let m = new_module()?;
            keep_module(m.clone())?;
            m
        }
    };
    match random(16) {
        0..=5 => give_all(m.forward_list(&[tensor()?])?)?,
        6 => give(m.call(&tensor()?)?)?,
        7 => {
            let (a, b) = (tensor()?, tensor()?);
            give_all(m.forward_opt(&[
                Some(&a),
                if often(3) { Some(&b) } else { None },
                Some(&a),
            ])?)?
        }
        8 => give_all(m.parameters()?)?,
        9 => {
            let old = put(&mut shared()?.states.lock().unwrap(), m.state_dict()?);
            drop(old);
        }
        10 => {
            keep_module(if often(3) { m.copy()? } else { m.copy_to(None, Some(tt::DType::F64))? })?
        }
        11 => drop((
            format!("{:?} {:?} {:?}", m, optimizer(), scheduler()),
            m.children(),
            m.print()?,
            m.class(),
            m.num_children(),
            m.child_name(0),
            m.get_submodule("0.0"),
            m.get_tensor("weight"),
        )),
        _ => change_module(&m)?,
    }
    Ok(())
}

tt::module! {
    /// A custom layer whose children and parameters tt owns.
    struct Doubled {
        inner: Vec<Module>,
        also: Option<Module>,
        scale: Tensor,
        shift: tt::Buffer,
        factor: f64,
        last: Held,
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        inside(&self.last.0)?;
        let mut x = x.mul(&self.scale)?.add(&self.shift)?;
        for inner in self.inner.iter().chain(&self.also) {
            x = inner.forward(&x)?.mul_scalar(self.factor)?;
        }
        Ok(x)
    }
}
fn doubled(last: Last) -> Result<Doubled> {
    Ok(Doubled {
        inner: (0..random(3)).filter_map(|_| module().ok()).collect(),
        also: module().ok().filter(|_| often(2)),
        scale: fresh()?,
        shift: tt::Buffer(tensor()?),
        factor: 2.0,
        last: Held(Arc::new(last)),
    })
}
struct Held(Arc<Last>);
impl tt::Member for Held {
    type Plain = Arc<Last>;
    fn plain(&self) -> Arc<Last> {
        self.0.clone()
    }
    fn restore(_: &str, _: &Module, plain: &Arc<Last>) -> Result<Held> {
        Ok(Held(plain.clone()))
    }
}

/// Modules that all threads call, also from within their closures.
fn sharing() -> Result<()> {
    let frozen = one_of(&shared()?.frozen.lock().unwrap());
    let frozen = match frozen {
        Some(frozen) if often(8) => frozen,
        _ => {
            let frozen = module()?.freeze()?;
            let old = put(&mut shared()?.frozen.lock().unwrap(), frozen.clone());
            drop(old);
            frozen
        }
    };
    match random(10) {
        0..=4 => give(frozen.forward(&tensor()?)?)?,
        5 => give_all(frozen.forward_list(&[tensor()?])?)?,
        6 => give_all(frozen.parameters()?)?,
        7 => change_module(&frozen.module())?,
        8 => keep_module(if often(2) { frozen.module() } else { frozen.module().copy()? })?,
        _ => drop((
            frozen.to_string(),
            frozen.module().child(0),
            frozen.module().get_submodule("0.0"),
        )),
    }
    Ok(())
}

fn new_optimizer() -> Result<Optimizer> {
    let params = match module() {
        Ok(m) if often(3) => m.parameters()?,
        _ => vec![tensor()?, tensor()?],
    };
    match random(13) {
        0 => optim::sgd_with(&params, optim::SgdOpts::new().momentum(0.9)),
        1 => optim::adam(&params),
        2 => optim::adamw(&params),
        3 => optim::rmsprop(&params),
        4 => optim::adagrad(&params),
        5 => optim::adadelta(&params),
        6 => optim::adamax(&params),
        7 => optim::nadam(&params),
        8 => optim::radam(&params),
        9 => optim::asgd(&params),
        10 => optim::rprop(&params),
        11 => optim::lion(&params),
        _ => optim::sgd(&params),
    }
}
fn optimizers() -> Result<()> {
    let o = match optimizer() {
        Ok(o) if often(6) => o,
        _ => {
            let o = new_optimizer()?;
            keep_optimizer(o.clone())?;
            o
        }
    };
    let (last, param) = (Last, random(4) as i64);
    match random(16) {
        0 | 1 => o.step()?,
        2 => o.set_lr(0.01)?,
        3 => optimizer()?.load_state_dict(&o.state_dict()?)?,
        4 | 5 => drop(o.step_closure(|| {
            inside(&last)?;
            act();
            tensor()?.sum()
        })?),
        6 => o.zero_grad(random(2) == 0)?,
        7 => o.add_param_group(&[tensor()?])?,
        8 => give_all(o.get_state(param, ["exp_avg", "momentum_buffer", "step"][random(3)])?)?,
        9 => {
            o.set_state(param, ["exp_avg", "momentum_buffer", "step"][random(3)], Some(&tensor()?))?
        }
        10 => {
            let ((name, t), also) = (o.tensor_at(param)?, tensor()?);
            optimizer()?.load_tensor(&name, if often(3) { &t } else { &also })?
        }
        11 => {
            let (name, v) = o.number_at(param)?;
            optimizer()?.load_number(&name, v)?
        }
        12 => give(tt::clip_grad_norm_(&[tensor()?, tensor()?], 0.5)?)?,
        13 => give_all((0..o.num_params().min(4)).filter_map(|i| o.param(i).ok()))?,
        _ => return schedulers(&o),
    }
    Ok(())
}
fn schedulers(o: &Optimizer) -> Result<()> {
    let last = Last;
    match random(10) {
        0 => keep_scheduler(o.lr_lambda(move |_, _| inside(&last).map(|_| 0.9), -1)?),
        1 => keep_scheduler(o.lr_multiplicative(move |_, _| inside(&last).map(|_| 0.9), -1)?),
        2 => keep_scheduler(lr::exponential(o, 0.9)?),
        3 => keep_scheduler(lr::sequential(o, &[scheduler()?, scheduler()?], &[2])?),
        4 => keep_scheduler(lr::chained(&[scheduler()?, scheduler()?])?),
        5 => scheduler()?.step_to(random(9) as i64),
        7 => scheduler()?.load_state_dict(&scheduler()?.state_dict()?),
        6 => {
            let s = scheduler()?;
            let (name, v) = s.number_at(random(4) as i64)?;
            s.load_number(&name, v)
        }
        _ => scheduler()?.step(),
    }
}

/// A function for captures and transforms, which computes with its inputs or anything else.
fn function(last: &Last, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    inside(last)?;
    let x = inputs.first().cloned().map_or_else(tensor, Ok)?;
    let y = match random(10) {
        0 => compute().and_then(|()| tensor())?,
        1 => module()?.call(&x)?,
        2 => x.dropout()?,
        3 => x.mul(&tensor()?)?,
        4 => x.index_get(tt::idx![0])?,
        5 => tt::apply(Double(Last), &[&x], 1)?.remove(0),
        6 => x.transpose(0, -1)?.reshape(&[-1])?,
        _ => x.exp()?.add_scalar(1)?,
    };
    match random(8) {
        0 => y.sum()?.backward()?,
        1 => drop(optimizer()?.step()),
        _ => {}
    }
    Ok(match random(6) {
        0 => vec![],
        1 => vec![y.clone(), y],
        2 => vec![x, y],
        3 => vec![y.sum()?],
        _ => vec![y],
    })
}

/// Graphs that all threads read and run, and edits of copies.
fn graphs() -> Result<()> {
    let g = one_of(&shared()?.graphs.lock().unwrap());
    match (g, random(10)) {
        (Some(g), 0..=2) => {
            let mut plan = g.plan()?;
            let fitting = |slot: &Tensor| match often(6) {
                true => tt::ones(slot.shape())?.to_dtype(slot.dtype()),
                false => tensor(),
            };
            let inputs = plan.inputs().iter().map(fitting).collect::<Result<Vec<_>>>()?;
            if random(8) == 0 {
                give_all(plan.outputs().to_vec())?;
            }
            give_all(plan.call(&inputs)?)
        }
        (Some(g), 3) => {
            let args: Result<Vec<_>> = g.nodes().map(|node| node.args()).collect();
            drop((args, g.to_string(), g.dot(), g.storage(random(3))));
            g.outputs().into_iter().try_for_each(|v| g.users(v).map(drop))
        }
        (Some(g), 4 | 5) => {
            let mut edited = g.copy()?;
            for _ in 0..random(4) {
                let _ = edit(&mut edited);
            }
            keep_graph(edited)
        }
        (Some(g), 6) => {
            keep_graph(g.optimize([Passes::EXACT, Passes::FOLD | Passes::DCE][random(2)])?)
        }
        (Some(g), 7) => {
            let path = file(random(3));
            let _ = if random(2) == 0 { g.save(&path) } else { g.export_onnx(&path) };
            keep_graph(Graph::load(&path)?)
        }
        _ => {
            let last = Last;
            let options = graph::CaptureOptions { allow_reads: random(3) == 0 };
            keep_graph(graph::capture_with(|x| function(&last, x), &[tensor()?], options)?)
        }
    }
}
fn keep_graph(g: Graph) -> Result<()> {
    let old = put(&mut shared()?.graphs.lock().unwrap(), Arc::new(g));
    drop(old);
    Ok(())
}
fn edit(g: &mut Graph) -> Result<()> {
    let mut values = g.inputs();
    values.extend(g.nodes().flat_map(|node| node.results()).flatten());
    let value = || one_of(&values).map_or(Arg::None, Arg::Value);
    let (at, name) = (random(g.num_nodes() + 2), ["exp", "gelu", "matmul", "sum_dim"][random(4)]);
    let args = [value(), if often(2) { value() } else { vec![0i64].into() }, true.into()];
    match random(4) {
        0 => g.remove(at),
        1 => g.set_outputs(&values[..random(values.len() + 1)]),
        _ => {
            let made = g.insert(at, name, &args[..random(3) + 1])?;
            match (one_of(&values), made.first()) {
                (Some(old), Some(new)) => g.replace_uses(old, *new),
                _ => Ok(()),
            }
        }
    }
}

/// Transforms of functions, compiled functions, and hooks on saved tensors.
fn transforms() -> Result<()> {
    let (last, x, v) = (Last, tensor()?, tensor()?);
    match random(8) {
        0 => {
            let (y, g) = tt::vjp(|x| function(&last, x), &[&x], &[])?;
            give_all(y.into_iter().chain(g.into_iter().flatten()))
        }
        1 => {
            let (y, d) = tt::jvp(|x| function(&last, x), &[&x], &[Some(&v)])?;
            give_all(y.into_iter().chain(d.into_iter().flatten()))
        }
        2 if x.size(0) < 100 => {
            give_all(tt::vmap(|x| function(&last, x), &[&x, &v], &[Some(0), None])?)
        }
        3 => {
            // A row for each element: of large results they would take minutes.
            let sums = |x: &[Tensor]| function(&last, x)?.iter().map(Tensor::sum).collect();
            let all = tt::jacobian(sums, &[&x])?;
            give_all(all.into_iter().flatten().take(3))
        }
        4 => {
            let pack = |t: &Tensor| inside(&Last).map(|()| t.clone());
            let unpack = |t: &Tensor| inside(&Last).map(|()| t.clone());
            tt::saved_tensors_hooks(pack, unpack, || {
                act();
                Ok(())
            })
        }
        5 => keep_compiled(Rc::new(tt::compile(move |x| function(&last, x), 4)?)),
        _ => {
            let f = compiled()?;
            drop(f.info()?);
            if random(20) == 0 {
                f.reset()?;
            }
            give_all(f.call(&[if often(3) { tt::ones(&[2, 3])? } else { x }])?)
        }
    }
}

fn file(i: usize) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("tt_torture_{}_{}", std::process::id(), i))
}
fn states() -> Result<()> {
    let s = shared()?;
    let state = one_of(&s.states.lock().unwrap());
    let mut state = state.map_or_else(StateDict::new, Ok)?;
    match random(9) {
        0 | 1 => state.set(["weight", "0.weight", "x"][random(3)], &tensor()?)?,
        2 => give_all((0..state.len().min(4)).filter_map(|i| state.at(i).ok()))?,
        3 => drop((state.names(), format!("{:?}", state))),
        4 => state = state.iter().filter(|_| often(3)).collect(),
        5 => state.extend([("y", tensor()?), ("weight", tensor()?)]),
        6 => give_all(state.clone().into_iter().take(3).map(|(_, tensor)| tensor))?,
        _ => {
            let path = file(random(3));
            let (m, g) = (module()?, &s.generator);
            let parts = Checkpoint::new().module(&m).generator(g);
            if random(2) == 0 {
                parts.extra(&mut state)?.save(&path)?
            } else {
                parts.extra(&mut state)?.load(&path)?
            }
        }
    }
    let old = put(&mut s.states.lock().unwrap(), state);
    drop(old);
    Ok(())
}

/// Calls in special modes.
fn modes() -> Result<()> {
    let last = Last;
    match random(12) {
        0 | 1 => tt::trace_dispatch(
            |_, _, _| {
                if random(20) == 0 {
                    act()
                }
            },
            act,
        ),
        2 => tt::ctx_set_poll(move || inside(&last)),
        3 => tt::ctx_set_poll(|| Ok(())),
        4 => {
            tt::no_grad(act);
            Ok(())
        }
        5 => {
            let _on = tt::anomaly_guard(true);
            act();
            Ok(())
        }
        6 => tt::profile(act).map(drop),
        7 => tt::cancellable(&Cancel::new()?, act),
        8 => {
            let s = shared()?;
            if random(50) == 0 {
                s.cancel.request();
            }
            tt::cancellable(&s.cancel, act)
        }
        9 => {
            let runtime = Runtime::new(RuntimeOpts::new().queue_drops(random(2) == 0).threads(2))?;
            let mut c = Context::new(Some(&runtime))?;
            c.run(|| drop((register(), act(), act())));
            runtime.poll();
            Ok(())
        }
        10 => {
            let s = shared()?;
            s.generator.set_state([1, 2])?;
            tt::manual_seed(3)?;
            s.generator.state().map(|_| ())
        }
        _ => tt::trim(),
    }
}
fn register() -> Result<()> {
    tt::register_op("torture(x: Tensor) -> Tensor", HostOp(Last))
}

/// Performs a random operation, or nothing if the nesting is too deep.
fn act() {
    let deep = OWN.try_with(|o| o.depth.replace(o.depth.get() + 1)).unwrap_or(DEEP);
    let done = (deep < DEEP && shared().is_ok()).then(|| {
        catch_unwind(AssertUnwindSafe(|| {
            if let Ok(s) = shared() {
                s.calls.fetch_add(1, Ordering::Relaxed);
            }
            match random(26) {
                22 | 23 => graphs(),
                24 | 25 => transforms(),
                20 | 21 => sharing(),
                0..=4 => compute(),
                5..=8 => differentiate(),
                9 | 10 => hook(),
                11 => look(),
                12..=14 => modules(),
                15 | 16 => optimizers(),
                17 => states(),
                18 => modes(),
                _ => fresh().map(drop),
            }
        }))
    });
    let _ = OWN.try_with(|o| o.depth.set(deep));
    match done {
        Some(Err(panic)) if !expected(&panic) => resume_unwind(panic),
        Some(Ok(Err(e))) => assert!(e.status != Status::Internal, "{:?}", e),
        _ => {}
    }
}
fn expected(panic: &Box<dyn std::any::Any + Send>) -> bool {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or(false, |t| t.contains("as it likes") || t.contains(": "))
}

fn torture(seed: u64, time: Duration, threads: u64) -> i64 {
    let shared = Arc::new(Shared {
        tensors: Mutex::default(),
        nodes: Mutex::default(),
        states: Mutex::default(),
        frozen: Mutex::default(),
        graphs: Mutex::default(),
        generator: Generator::new(seed).unwrap(),
        cancel: Cancel::new().unwrap(),
        calls: AtomicI64::new(0),
    });
    let (end, seeds) = (Instant::now() + time, AtomicU64::new(seed));
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                OWN.with(|o| {
                    o.random.set(
                        seeds
                            .fetch_add(1, Ordering::Relaxed)
                            .wrapping_add(1)
                            .wrapping_mul(0x9e3779b97f4a7c15),
                    );
                    *o.shared.borrow_mut() = Some(shared.clone());
                });
                let _ = register();
                while Instant::now() < end {
                    act();
                }
                tt::ctx_set_poll(|| Ok(())).unwrap();
                OWN.with(|o| o.depth.set(DEEP)); // drops perform no more operations
                let kept = OWN.with(|o| {
                    (o.modules.take(), o.optimizers.take(), o.schedulers.take(), o.shared.take())
                });
                drop((kept, OWN.with(|o| o.compiled.take())));
            });
        }
    });
    let calls = shared.calls.load(Ordering::Relaxed);
    drop(shared);
    calls
}

#[test]
fn anything_on_any_thread() {
    let set = std::env::var("TT_TORTURE").unwrap_or_default();
    let mut set = set.split(',').map(|n| n.parse::<u64>().ok());
    let mut next = |standard| set.next().flatten().unwrap_or(standard);
    let (seed, seconds, threads) = (next(1), next(2), next(3));
    let loud = std::env::var("TT_TORTURE").is_ok();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.to_string();
        if loud
            && !text.contains("as it likes")
            && !text.contains(": self is [") // from `assigned`
            && !text.contains("unwrap()` on a `None`")
            && !text.contains("out of bounds")
        {
            eprintln!("{}", text);
        }
    }));
    let calls = torture(seed, Duration::from_secs(seconds), threads);
    for i in 0..3 {
        let _ = std::fs::remove_file(file(i));
    }
    drop(std::panic::take_hook());
    if loud {
        eprintln!("{} calls", calls);
    }
    assert!(calls > 100, "{} calls", calls);
}
