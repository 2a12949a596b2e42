//! Custom layers, and modules shared between threads.
use crate::{floats, values};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use tt::{nn, optim, Layer, Module, Result, SharedModule, StateDict, Status, Tensor};

tt::module! {
    /// Multiplies the input by a parameter.
    #[derive(Debug)]
    struct Scale {
        by: Tensor,
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.mul(&self.by)
    }
}

tt::module! {
    #[derive(Debug)]
    pub struct Net {
        pub first: Module,
        blocks: Vec<Scale>,
        last: Option<Module>,
        none: Option<Module>,
        factors: Vec<f64>,
        name: String,
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = self.first.forward(x)?;
        for (block, factor) in self.blocks.iter().zip(&self.factors) {
            x = block.forward(&x)?.mul_scalar(*factor)?;
        }
        assert!(self.none.is_none() && self.name == "net");
        match &self.last {
            Some(last) => last.forward(&x),
            None => Ok(x),
        }
    }
}

tt::module! {
    struct Nothing {}
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}

fn scale(by: f32) -> Result<Scale> {
    Ok(Scale { by: floats(&[by]).requires_grad_(true)? })
}

fn net() -> Result<Net> {
    Ok(Net {
        first: nn::linear(3, 3)?,
        blocks: vec![scale(2.0)?, scale(3.0)?],
        last: Some(nn::linear(3, 2)?),
        none: None,
        factors: vec![1.0, 0.5],
        name: "net".into(),
    })
}

#[test]
fn structs_are_trees_of_layers() -> Result<()> {
    let net = net()?;
    let x = tt::randn(&[4, 3])?;
    let y = values(&net.forward(&x)?)?;
    let names = net.named_parameters()?.names();
    let expected = ["first.weight", "first.bias", "blocks.0.by", "blocks.1.by", "last.weight"];
    assert_eq!(
        (&names[..5], names.len(), net.parameters()?.len()),
        (&expected.map(String::from)[..], 6, 6)
    );
    let children: Vec<String> = net.children()?.into_iter().map(|(name, _)| name).collect();
    assert_eq!(children, ["first", "blocks", "last", "factors"]);

    let module = net.module()?;
    assert_eq!((module.class().as_str(), values(&module.forward(&x)?)?), ("Net", y.clone()));
    assert!(module.to_string().contains("(blocks): ModuleList(\n    (0): Scale()"));
    net.train(false)?;
    assert!(!net.first.training() && !net.last.as_ref().unwrap().training());

    let copy = module.copy()?; // copies the tensors, too
    net.blocks[0].by.clone().requires_grad_(false)?;
    net.load_state_dict(&net.state_dict()?.iter().map(|(n, t)| (n, t * 2.0)).collect())?;
    assert_eq!(values(&copy.forward(&x)?)?, y);
    assert_ne!(values(&module.forward(&x)?)?, y); // the struct and its module share tensors
    assert_eq!(values(&module.forward(&x)?)?, values(&net.forward(&x)?)?);

    let state = net.state_dict()?;
    let part: StateDict = state.iter().filter(|(name, _)| name.starts_with("first.")).collect();
    assert_eq!(net.load_state_dict(&part).unwrap_err().status, Status::InvalidArg);
    net.load_state_dict_with(&part, tt::opts::ModuleLoadStateDictOpts::new().strict(false))?;
    net.requires_grad_(false)?;
    assert!(net.parameters()?.iter().all(|p| !p.requires_grad()));
    Ok(())
}

#[test]
fn sequences_of_anything() -> Result<()> {
    let boxed: Vec<Box<dyn Layer>> = vec![Box::new(net()?), Box::new(nn::relu()?)];
    let all = tt::sequential![
        nn::linear(3, 3)?,
        &scale(2.0)?,
        tt::sequential(boxed)?,
        Nothing {},
        Module::from_fn("Minus", |x| x.neg())?,
    ]?;
    assert_eq!((all.num_children(), all.parameters()?.len()), (5, 9));
    let y = all.forward(&tt::randn(&[2, 3])?)?;
    assert_eq!(y.shape(), [2, 2]);
    assert!(values(&y)?.iter().all(|v| *v <= 0.0));
    assert_eq!(tt::sequential![]?.num_children(), 0);
    assert_eq!(tt::sequential([nn::relu()?; 1])?.num_children(), 1);
    Ok(())
}

/// A layer by hand, whose parameters are not those of its module.
struct Fixed(Module);
impl Layer for Fixed {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.forward(x)
    }
    fn module(&self) -> Result<Module> {
        Ok(self.0.clone())
    }
    fn parameters(&self) -> Result<Vec<Tensor>> {
        Ok(vec![])
    }
}

#[test]
fn pointers_to_layers_keep_their_methods() -> Result<()> {
    let fixed = std::rc::Rc::new(Fixed(tt::nn::linear(2, 1)?));
    let boxed: Box<dyn Layer> = Box::new(&fixed);
    assert_eq!((boxed.parameters()?.len(), boxed.module()?.parameters()?.len()), (0, 2));
    assert_eq!(tt::sequential![fixed, std::sync::Arc::new(scale(2.0)?)]?.num_children(), 2);
    Ok(())
}

#[test]
fn structs_train() -> Result<()> {
    tt::manual_seed(3)?;
    let net = net()?;
    let (x, y) = (tt::randn(&[32, 3])?, tt::randn(&[32, 2])?);
    let adam = optim::adam(net.parameters()?)?;
    adam.set_lr(0.02)?;
    let loss = || net.forward(&x)?.mse_loss(&y);
    let before = loss()?.item::<f32>()?;
    for _ in 0..50 {
        net.zero_grad()?;
        loss()?.backward()?;
        adam.step()?;
    }
    assert!(loss()?.item::<f32>()? < 0.9 * before);
    Ok(())
}

#[test]
fn errors_inside_layers_arrive() -> Result<()> {
    let module = net()?.module()?;
    let e = module.forward(&tt::zeros(&[2, 5])?).unwrap_err();
    assert_eq!(
        (e.status, e.cause.as_ref().map(|c| c.status)),
        (Status::Callback, Some(Status::Shape))
    );
    assert!(module.forward_list(&[floats(&[1.0]), floats(&[1.0])]).is_err());
    module.register_module("first", &nn::identity()?)?;
    module.forward(&tt::zeros(&[2, 3])?)?;
    let scale = scale(1.0)?.module()?;
    scale.register_parameter("by", None)?;
    let e = scale.forward(&floats(&[1.0])).unwrap_err();
    assert!(e.cause.as_ref().unwrap().message.contains("by was removed"));
    Ok(())
}

#[test]
fn threads_share_a_frozen_module() -> Result<()> {
    fn shareable<T: Send + Sync + Clone + 'static>() {}
    shareable::<SharedModule>();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let counted = Module::from_fn("Counted", move |x| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(x.clone())
    })?;
    let net = tt::sequential![
        nn::conv2d(1, 4, &[3])?,
        nn::batch_norm2d(4)?,
        nn::dropout()?,
        nn::flatten()?,
        nn::linear(4 * 6 * 6, 3)?,
        net()?,
        counted,
    ]?;
    let x = tt::randn(&[2, 1, 8, 8])?;
    let weight = net.get_tensor("0.weight")?.unwrap();
    let shared = net.freeze()?;
    assert_eq!(shared.parameters()?[0].data_ptr(), weight.data_ptr()); // no copy
    let expected = values(&shared.forward(&x)?)?;
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..50 {
                    let y = shared.forward(&x).unwrap();
                    assert!(!y.requires_grad());
                    assert_eq!(values(&y).unwrap(), expected);
                }
                let module = shared.module(); // this thread's handle
                assert!(module.is_frozen() && !module.training());
                assert!(module.forward(&x).unwrap().requires_grad());
                assert_eq!(module.train(true).unwrap_err().status, Status::InvalidArg);
                assert!(module.child(1).unwrap().register_parameter("weight", None).is_err());
                assert_eq!(shared.state_dict().unwrap().len(), module.state_dict().unwrap().len());
            });
        }
    });
    assert_eq!(calls.load(Ordering::Relaxed), 4 * 51 + 1);
    Ok(())
}

#[test]
fn frozen_modules_stay_as_they_are() -> Result<()> {
    let net = tt::sequential![nn::linear(2, 2)?, nn::batch_norm1d(2)?]?;
    let id = net.register_forward_hook(|_, _, _| Ok(vec![]))?;
    assert!(net.freeze().unwrap_err().message.contains("has hooks"));
    assert!(!net.is_frozen());
    net.remove_hook(id)?;
    let shared = net.freeze()?;
    let refused = |r: Result<()>| assert_eq!(r.unwrap_err().status, Status::InvalidArg);
    refused(net.train(false));
    refused(net.append(&nn::relu()?));
    refused(net.load_state_dict(&net.state_dict()?));
    refused(net.requires_grad_(false));
    refused(net.register_forward_hook(|_, _, _| Ok(vec![])).map(drop));
    refused(unsafe { net.to(None, Some(tt::DType::F64)) });
    let path = crate::temporary("frozen");
    tt::Checkpoint::new().module(&net).save(&path)?;
    refused(tt::Checkpoint::new().module(&net).load(&path));
    std::fs::remove_file(path).unwrap();
    let copy = shared.module().copy()?;
    copy.train(true)?;
    assert!(copy.training() && !net.training() && !copy.is_frozen());
    assert!(tt::sequential![shared.clone()]?.train(true).is_err());
    assert!(format!("{:?}", shared).starts_with("SharedModule(Sequential("));
    Ok(())
}

#[test]
fn optimizers_from_iterators() -> Result<()> {
    let (a, b) = (floats(&[1.0]).requires_grad_(true)?, floats(&[2.0]).requires_grad_(true)?);
    let named: StateDict = [("a", &a), ("b", &b)].into_iter().collect();
    for sgd in [
        optim::sgd([&a, &b])?,
        optim::sgd([&a, &b])?,
        optim::sgd(vec![a.clone(), b.clone()])?,
        optim::sgd(named.values().filter(|t| t.requires_grad()))?,
        optim::sgd(named.iter().map(|(_, t)| t))?,
    ] {
        assert_eq!((sgd.num_params(), sgd.param(0)?.data_ptr()), (2, a.data_ptr()));
    }
    let adam = optim::adam([&a])?;
    adam.add_param_group([b.clone()])?;
    adam.set_lr(0.25)?;
    assert_eq!((adam.get_f64(0, "lr")?, adam.get_f64(1, "lr")?, adam.lr()?), (0.25, 0.25, 0.25));
    (&a * &b).sum()?.backward()?;
    adam.step()?;
    tt::clip_grad_norm_(named.values(), 1.0)?;
    let state = adam.state_dict()?;
    assert_eq!(state.tensor("param_groups.1.lr")?.item::<f64>()?, 0.25);
    assert_eq!(state.tensor("state.1.step")?.item::<u32>()?, 1);
    let other = optim::adam([&a])?;
    other.add_param_group([&b])?;
    other.load_state_dict(&state)?;
    assert_eq!(other.state_dict()?.names(), state.names());
    assert_eq!(other.lr()?, 0.25);
    assert!(optim::sgd([&a])?.load_state_dict(&state).is_err());
    let schedule = tt::lr::exponential(&adam, 0.5)?;
    schedule.step()?;
    let kept = schedule.state_dict()?;
    let again = tt::lr::exponential(&other, 0.5)?;
    again.load_state_dict(&kept)?;
    assert_eq!((again.last_epoch(), kept.contains_key("last_epoch")), (1, true));
    Ok(())
}

#[test]
fn closures_of_one_thread_may_change_what_they_capture() -> Result<()> {
    let (mut seen, x) = (vec![], floats(&[1.0]).requires_grad_(true)?);
    let sgd = optim::sgd([&x])?;
    sgd.step_closure(|| {
        let loss = (&x * &x).sum()?;
        loss.backward()?;
        seen.push(loss.item::<f32>()?);
        Ok(loss)
    })?;
    assert_eq!(seen, [1.0]);
    let mut epochs = 0;
    let schedule = sgd.lr_lambda(
        move |_, _| {
            epochs += 1;
            Ok(1.0 / f64::from(epochs))
        },
        -1,
    )?;
    schedule.step()?;
    assert!(schedule.get_last_lr()?[0] < 0.001);
    let m = nn::identity()?;
    let (told, mut n) = (Arc::new(AtomicUsize::new(0)), 0);
    let tell = told.clone();
    m.register_forward_hook(move |m, inputs, _| {
        n += 1;
        tell.store(n, Ordering::Relaxed);
        if n == 2 {
            m.forward(inputs[0].as_ref().unwrap())?; // calls this hook again
        }
        Ok(vec![])
    })?;
    m.forward(&x)?;
    let e = m.forward(&x).unwrap_err();
    let inner = e.cause.as_ref().and_then(|e| e.cause.as_ref()).unwrap();
    assert!(inner.message.contains("already running"), "{:?}", e);
    assert_eq!(told.load(Ordering::Relaxed), 2);
    Ok(())
}

#[test]
fn initial_values_have_their_spread() -> Result<()> {
    use tt::init::{self, Fan, Nonlinearity};
    let spread = |t: &Tensor| t.mul(t)?.mean()?.sqrt()?.item::<f64>();
    let most = |t: &Tensor| t.abs()?.max()?.item::<f64>();
    let shape = [100, 200];
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 0.05;
    for (t, std, bound) in [
        (init::xavier_uniform(&shape, 1.0)?, (2f64 / 300.0).sqrt(), (6f64 / 300.0).sqrt()),
        (init::xavier_normal(&shape, 2.0)?, 2.0 * (2f64 / 300.0).sqrt(), f64::MAX),
        (init::kaiming_uniform(&shape, Fan::In, Nonlinearity::Relu)?, 0.1, (3f64 / 100.0).sqrt()),
        (init::kaiming_normal(&shape, Fan::Out, Nonlinearity::Tanh)?, 5.0 / 30.0, f64::MAX),
        (init::trunc_normal(&shape, 0.0, 0.5, -1.0, 1.0)?, 0.5 * 0.8796, 1.0),
    ] {
        assert!(close(spread(&t)?, std) && most(&t)? <= bound * 1.000001, "{}", std);
    }
    assert!((init::calculate_gain(Nonlinearity::LeakyRelu(1.0)) - 1.0).abs() < 1e-12);
    for shape in [vec![3, 5], vec![5, 3], vec![2, 3, 2]] {
        let q = init::orthogonal(&shape, 2.0)?;
        let q = q.flatten_with(tt::opts::FlattenOpts::new().start_dim(1))?;
        let wide = q.shape()[0] <= q.shape()[1];
        let product = if wide { q.matmul(&q.t()?)? } else { q.t()?.matmul(&q)? };
        let unit = tt::eye(product.shape()[0])?.mul_scalar(4)?;
        assert!(product.allclose(&unit, 1e-5, 1e-5, false)?);
    }
    let kernel = init::dirac(&[4, 1, 3], 2)?;
    assert_eq!(values(&kernel)?, [0., 1., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0.]);
    assert!(init::xavier_normal(&[3], 1.0).is_err() && init::dirac(&[3, 3], 1).is_err());
    Ok(())
}

#[test]
fn sequences_are_packed_and_padded() -> Result<()> {
    let x = tt::randn(&[3, 5, 4])?.requires_grad_(true)?;
    let packed = tt::pack_padded_sequence(&x, &[2, 5, 3], true)?;
    assert_eq!(packed.batch_sizes.to_vec::<i64>()?, [3, 3, 2, 1, 1]);
    assert_eq!((packed.data.shape(), &packed.sorted_indices[..]), (&[10, 4][..], &[1, 2, 0][..]));
    let other = tt::pack_padded_sequence(&x.transpose(0, 1)?, &[2, 5, 3], false)?;
    assert_eq!(values(&other.data)?, values(&packed.data)?);
    let (padded, lengths) = tt::pad_packed_sequence(&packed, true, -1.0)?;
    assert_eq!(lengths, [2, 5, 3]);
    let same = |i: i64, n: i64| -> Result<bool> {
        let part = |t: &Tensor| values(&t.narrow(0, i, 1)?.narrow(1, 0, n)?);
        Ok(part(&padded)? == part(&x)?)
    };
    assert!(same(0, 2)? && same(1, 5)? && same(2, 3)?);
    assert_eq!(padded.narrow(1, 4, 1)?.narrow(0, 0, 1)?.max()?.item::<f32>()?, -1.0);
    packed.data.sum()?.backward()?;
    assert_eq!(x.grad()?.unwrap().sum()?.item::<f32>()?, 40.0);
    let short = [floats(&[1.0, 2.0]), floats(&[3.0])];
    assert_eq!(values(&tt::pad_sequence(&short, false, 9.0)?)?, [1.0, 3.0, 2.0, 9.0]);
    assert_eq!(values(&tt::pad_sequence(&short, true, 9.0)?)?, [1.0, 2.0, 3.0, 9.0]);
    assert!(tt::pack_padded_sequence(&x, &[2, 5], true).is_err());
    assert!(tt::pack_padded_sequence(&x, &[0, 5, 3], true).is_err());
    Ok(())
}

#[test]
fn modules_are_listed_once_with_their_paths() -> Result<()> {
    let shared = nn::linear(2, 2)?;
    let inner = tt::sequential([&shared, &nn::relu()?])?;
    let net = tt::sequential([&inner, &shared])?;
    let (paths, classes): (Vec<_>, Vec<_>) =
        net.named_modules()?.into_iter().map(|(path, m)| (path, m.class())).unzip();
    assert_eq!(paths, ["", "0", "0.0", "0.1"]);
    assert_eq!(classes, ["Sequential", "Sequential", "Linear", "ReLU"]);
    assert_eq!(net.modules()?.len(), 4);
    Ok(())
}
