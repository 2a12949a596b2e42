use crate::{floats, temporary, values};
use tt::opts::*;
use tt::{lr, nn, optim, Checkpoint, DType, Result, StateDict, Tensor};

fn net() -> Result<tt::Module> {
    tt::sequential([
        nn::conv2d_with(1, 4, &[3], nn::Conv2dOpts::new().padding(&[1]))?,
        nn::batch_norm2d(4)?,
        nn::relu()?,
        nn::max_pool2d(&[2])?,
        nn::flatten()?,
        nn::dropout_with(nn::DropoutOpts::new().p(0.1))?,
        nn::linear_with(16, 3, nn::LinearOpts::new().bias(true))?,
    ])
}

fn step(net: &tt::Module, adam: &tt::Optimizer) -> Result<f32> {
    let (x, y) = (tt::randn(&[8, 1, 4, 4])?, tt::randint(0, 3, &[8])?);
    adam.zero_grad(true)?;
    let loss = net.call(&x)?.cross_entropy(&y)?;
    loss.backward()?;
    tt::clip_grad_norm_with_(
        &net.parameters()?,
        1.0,
        ClipGradNormOpts::new().norm_type(f64::INFINITY),
    )?;
    adam.step()?;
    loss.item()
}

#[test]
fn resumed_training_is_the_same() -> Result<()> {
    let path = temporary("run");
    let run = |resume: bool| -> Result<(Vec<f32>, StateDict)> {
        tt::manual_seed(3)?;
        let net = net()?;
        let adam = optim::adam_with(
            &net.parameters()?,
            optim::AdamOpts::new().lr(0.02).betas((0.8, 0.99)),
        )?;
        let schedule = tt::lr::cosine_annealing(&adam, 6)?;
        let (generator, mut extra) = (tt::Generator::current()?, StateDict::new()?);
        let parts = Checkpoint::new()
            .module(&net)
            .optimizer(&adam)
            .scheduler(&schedule)
            .generator(&generator);
        let mut losses = vec![];
        if resume {
            parts.extra(&mut extra)?.load(&path)?;
            losses = extra.tensor("losses")?.to_vec()?;
        }
        for i in losses.len()..6 {
            losses.push(step(&net, &adam)?);
            schedule.step()?;
            if i == 2 {
                extra.set("losses", &floats(&losses))?;
                parts.extra(&mut extra)?.save(&path)?;
            }
        }
        Ok((losses, net.state_dict()?))
    };
    let (whole, resumed) = (run(false)?, run(true)?);
    assert_eq!(whole.0, resumed.0);
    for name in whole.1.names() {
        assert_eq!(
            whole.1.tensor(&name)?.to_dtype(DType::F64)?.to_vec::<f64>()?,
            resumed.1.tensor(&name)?.to_dtype(DType::F64)?.to_vec::<f64>()?
        );
    }
    std::fs::remove_file(path).unwrap();
    Ok(())
}

#[test]
fn modules_and_their_state() -> Result<()> {
    let net = net()?;
    assert_eq!(net.parameters()?.len(), 6);
    assert_eq!(net.named_parameters()?.names()[..2], ["0.weight", "0.bias"]);
    assert_eq!(net.get_submodule("6")?.class(), "Linear");
    assert_eq!(net.get_tensor("6.bias")?.unwrap().shape(), [3]);
    let state = net.state_dict()?;
    let other = net.copy()?;
    unsafe { other.get_tensor("0.weight")?.unwrap().detach()?.zero_()? };
    other.load_state_dict(&state)?;
    assert_eq!(
        values(&other.get_tensor("0.weight")?.unwrap())?,
        values(&net.get_tensor("0.weight")?.unwrap())?
    );
    let mut partial = StateDict::new()?;
    partial.set("6.bias", &tt::zeros(&[3])?)?;
    assert!(net.load_state_dict(&partial).is_err());
    net.load_state_dict_with(&partial, ModuleLoadStateDictOpts::new().strict(false))?;
    net.train(false)?;
    net.requires_grad_(false)?;
    let wide = net.copy_to(None, Some(DType::F64))?;
    assert_eq!(
        (wide.parameters()?[0].dtype(), net.parameters()?[0].dtype()),
        (DType::F64, DType::F32)
    );
    unsafe { net.to(None, Some(DType::F64))? };
    assert!(!net.training() && !net.parameters()?[0].requires_grad());
    assert_eq!(
        net.call(&tt::zeros_with(&[2, 1, 4, 4], ZerosOpts::new().dtype(DType::F64))?)?.dtype(),
        DType::F64
    );
    assert_eq!(net.num_children(), 7);
    assert_eq!(
        (0..7).filter_map(|i| net.child_name(i)).collect::<Vec<_>>(),
        ["0", "1", "2", "3", "4", "5", "6"]
    );
    Ok(())
}

#[test]
fn clones_of_state_dicts_share_tensors_alone() -> Result<()> {
    let mut state = StateDict::new()?;
    state.set("a", &floats(&[1.0]))?;
    let kept = state.clone();
    state.set("b", &floats(&[2.0]))?;
    state.set("a", &floats(&[3.0]))?;
    assert_eq!(
        (kept.names(), state.names(), values(&kept.tensor("a")?)?),
        (vec!["a".into()], vec!["a".into(), "b".into()], vec![1.0])
    );
    let mut also = kept.clone();
    assert_eq!(also.tensor("a")?.data_ptr(), kept.tensor("a")?.data_ptr());
    let net = nn::linear(1, 1)?;
    let path = temporary("extra");
    Checkpoint::new().module(&net).extra(&mut state)?.save(&path)?;
    Checkpoint::new().module(&net).extra(&mut also)?.load(&path)?;
    assert_eq!((also.len(), kept.len(), values(&also.tensor("a")?)?), (2, 1, vec![3.0]));
    std::fs::remove_file(path).unwrap();
    let seen = std::thread::scope(|s| {
        [&kept, &also].map(|d| s.spawn(move || d.names().len())).map(|t| t.join().unwrap())
    });
    assert_eq!(seen, [1, 2]);
    Ok(())
}

#[test]
fn losses_and_attention_take_several_inputs() -> Result<()> {
    let (scores, classes) = (tt::randn(&[4, 3])?, Tensor::from_slice(&[0i64, 1, 2, 0], &[4])?);
    let loss = nn::cross_entropy_loss_with(nn::CrossEntropyLossOpts::new().label_smoothing(0.1))?;
    let both = loss.forward_list(&[&scores, &classes])?;
    assert_eq!(both[0].shape(), [0i64; 0]);
    let attention =
        nn::multihead_attention_with(8, 2, nn::MultiheadAttentionOpts::new().batch_first(true))?;
    let x = tt::randn(&[2, 5, 8])?;
    let (y, weights) = attention.attend(
        &x,
        &x,
        &x,
        MultiheadAttentionForwardOpts::new().average_attn_weights(false),
    )?;
    assert_eq!((y.shape(), weights.unwrap().shape()), (&[2, 5, 8][..], &[2, 2, 5, 5][..]));
    assert!(attention
        .attend(&x, &x, &x, MultiheadAttentionForwardOpts::new().need_weights(false))?
        .1
        .is_none());
    let outs = attention.forward_opt(&[Some(&x), Some(&x), Some(&x), None])?;
    assert_eq!(outs[0].shape(), [2, 5, 8]);
    Ok(())
}

#[test]
fn groups_values_and_state() -> Result<()> {
    let (a, b) = (floats(&[1.0]).requires_grad_(true)?, floats(&[2.0]).requires_grad_(true)?);
    let adam = optim::adamw([&a])?;
    adam.add_param_group([&b])?;
    adam.set_f64(1, "lr", 0.5)?;
    assert_eq!(
        (adam.num_groups(), adam.num_params(), adam.group_size(1), adam.get_f64(0, "lr")?),
        (2, 2, 1, 1e-3)
    );
    assert!(adam.get_f64(0, "speed").is_err());
    (&a * &b).sum()?.backward()?;
    adam.step()?;
    assert!(
        adam.get_state(0, "exp_avg")?.is_some()
            && adam.get_state(0, "momentum_buffer").map_or(true, |s| s.is_none())
    );
    let tensors = (0..adam.num_tensors()).map(|i| adam.tensor_at(i)).collect::<Result<Vec<_>>>()?;
    let numbers = (0..adam.num_numbers()).map(|i| adam.number_at(i)).collect::<Result<Vec<_>>>()?;
    assert!(
        tensors.iter().any(|t| t.0 == "state.1.exp_avg_sq")
            && numbers.iter().any(|n| n.0 == "param_groups.1.lr" && n.1 == 0.5)
    );
    let other = optim::adamw([&a])?;
    other.add_param_group([&b])?;
    tensors.iter().try_for_each(|(name, t)| other.load_tensor(name, t))?;
    numbers.iter().try_for_each(|(name, v)| other.load_number(name, *v))?;
    assert_eq!(
        values(&other.get_state(1, "exp_avg")?.unwrap())?,
        values(&adam.get_state(1, "exp_avg")?.unwrap())?
    );
    other.set_state(1, "exp_avg", None)?;
    assert_eq!(adam.param(1)?.data_ptr(), b.data_ptr());
    let warm =
        tt::lr::linear_with(&adam, tt::lr::LinearOpts::new().start_factor(0.5).total_iters(2))?;
    let then = tt::lr::exponential(&adam, 0.5)?;
    let all = tt::lr::sequential(&adam, &[&warm, &then], &[2])?;
    assert_eq!(all.get_last_lr()?.len(), 2);
    assert!(all.num_numbers() > 0 && all.number_at(0)?.0 == "last_epoch");
    Ok(())
}

#[test]
fn gradients_as_functions() -> Result<()> {
    let x = floats(&[2.0]).requires_grad_(true)?;
    let unused = floats(&[1.0]).requires_grad_(true)?;
    let y = &x * &x * &x;
    let with = floats(&[10.0]);
    let grads = tt::grad(
        &[&y],
        &[&x, &unused],
        GradOpts::new().allow_unused(true).grad_outputs(&[Some(with.clone())]).retain_graph(true),
    )?;
    assert_eq!((values(grads[0].as_ref().unwrap())?, grads[1].is_none()), (vec![120.0], true));
    assert!(x.grad()?.is_none());
    y.backward_with(
        BackwardOpts::new().gradient(&with).inputs(std::slice::from_ref(&x)).retain_graph(true),
    )?;
    tt::backward_all(&[&y], &[None], BackwardOpts::new())?;
    assert_eq!(values(&x.grad()?.unwrap())?, [132.0]);
    let middle = &x * 1.0;
    middle.retain_grad()?;
    middle.sum()?.backward()?;
    assert!(middle.grad()?.is_some());
    x.set_grad(Some(&with))?;
    assert_eq!(values(&x.grad()?.unwrap())?, [10.0]);
    let _on = tt::anomaly_guard(true);
    assert!(tt::anomaly_enabled());
    let zero = floats(&[0.0]).requires_grad_(true)?;
    let e = (zero.sqrt()? * 0.0).sum()?.backward().unwrap_err();
    assert!(e.message.contains("sqrt"), "{}", e);
    Ok(())
}

#[test]
fn files_of_tensors() -> Result<()> {
    let path = temporary("tensors");
    tt::save(
        &path,
        [("b", &floats(&[1.0, 2.0])), ("a", &tt::ones(&[2, 2])?)],
        &[("format", "tt")],
    )?;
    let (read, mapped) = (tt::SafeTensors::open(path.to_str().unwrap())?, unsafe {
        tt::SafeTensors::map(path.to_str().unwrap())?
    });
    assert_eq!(
        (read.len(), mapped.tensor("b")?.to_vec::<f32>()?, read.tensor("a")?.shape()),
        (2, vec![1.0, 2.0], &[2, 2][..])
    );
    assert_eq!(
        (read.metadata_size(), read.metadata_key(0).as_deref(), read.metadata_value(0).as_deref()),
        (1, Some("format"), Some("tt"))
    );
    assert!(
        !mapped.tensor("a")?.is_writable() && read.tensor("c").is_err() && read.name(7).is_none()
    );
    std::fs::remove_file(path).unwrap();
    Ok(())
}

#[test]
fn files_of_pytorch() -> Result<()> {
    let recorded = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/python/conformance-training/files/good/training.pt"
    );
    let state = tt::torch_load(recorded)?;
    let structure = state.structure().unwrap();
    assert_eq!((state.len(), state.tensor("model.0.weight")?.shape()), (27, &[2, 1, 3, 3][..]));
    assert!(structure
        .starts_with(r#"{"dict":[["model",{"ordered":[["0.weight",{"tensor":"model.0.weight"}],"#));
    let contents = state.contents().unwrap();
    let weight = contents.get("model").and_then(|m| m.get("0.weight"));
    assert_eq!(weight, Some(&tt::Content::Tensor("model.0.weight".to_string())));
    let mut changed = state.clone();
    changed.set("more", &floats(&[1.0]))?;
    assert_eq!((changed.len(), state.len(), changed.structure()), (28, 27, state.structure()));
    let path = temporary("torch");
    tt::torch_save(path.to_str().unwrap(), &state, Some(&structure))?;
    assert_eq!(tt::torch_load(path.to_str().unwrap())?.structure(), Some(structure));
    tt::torch_save(path.to_str().unwrap(), &tt::nn::linear(2, 3)?.state_dict()?, None)?;
    assert_eq!(tt::torch_load(path.to_str().unwrap())?.names(), ["weight", "bias"]);
    let values = r#"{"ordered": [["step", -7], [3, {"tuple": [true, null, "a\u00e9\"\n"]}],
        ["big", 36893488147419103232], ["dtype", {"dtype": "float32"}], ["none", {"list": []}],
        ["floats", {"list": [{"float": "-0x1.8p+1"}, {"float": "inf"}, {"float": "0x1p-1074"},
        {"float": "0x1.fffffffffffffp+1023"}, {"float": "-0x0p+0"}]}],
        ["at", {"device": "cpu"}]]}"#;
    tt::torch_save(path.to_str().unwrap(), &tt::StateDict::new()?, Some(values))?;
    let contents = tt::torch_load(path.to_str().unwrap())?.contents().unwrap();
    let value = |key| contents.get(key).unwrap();
    assert_eq!((value("step").as_i64(), value("step").as_f64()), (Some(-7), Some(-7.0)));
    assert_eq!((value("big").as_i64(), value("big").as_f64()), (None, Some(2f64.powi(65))));
    assert_eq!((value("dtype").as_str(), value("at").as_str()), (Some("float32"), Some("cpu")));
    assert!(value("none").items().is_empty() && contents.get("nothing").is_none());
    let (key, tuple) = &contents.entries()[1];
    assert_eq!((key.as_i64(), tuple.at(0).unwrap().as_bool()), (Some(3), Some(true)));
    assert_eq!(
        (tuple.at(1), tuple.at(2).unwrap().as_str()),
        (Some(&tt::Content::None), Some("aé\"\n"))
    );
    let floats: Vec<f64> = value("floats").items().iter().map(|x| x.as_f64().unwrap()).collect();
    assert_eq!(floats, [-3.0, f64::INFINITY, f64::from_bits(1), f64::MAX, -0.0]);
    assert!(floats[4].is_sign_negative());
    let e = tt::torch_save(path.to_str().unwrap(), &state, Some("{")).unwrap_err();
    assert!(
        e.status == tt::Status::InvalidArg && tt::StateDict::new()?.structure().is_none(),
        "{}",
        e
    );
    std::fs::remove_file(path).unwrap();
    Ok(())
}

/// The Rosenbrock function of four numbers.
fn rosenbrock(x: &Tensor) -> Result<Tensor> {
    let (low, high) = (x.index_get(tt::idx![..3])?, x.index_get(tt::idx![1..])?);
    let (off, rest) = (high - &low * &low, 1.0 - low);
    (&off * &off * 100.0 + &rest * &rest).sum()
}

#[test]
fn lbfgs_evaluates_the_loss_in_its_steps() -> Result<()> {
    let start = [-1.2f64, 1.0, -0.5, 0.8];
    let opts = optim::LbfgsOpts::new().line_search_fn(tt::LineSearch::StrongWolfe);
    let minimizer = |values: &[f64]| -> Result<(Tensor, tt::Optimizer)> {
        let x = Tensor::from(values).requires_grad_(true)?;
        let lbfgs = optim::lbfgs_with([&x], opts)?;
        Ok((x, lbfgs))
    };
    let step = |x: &Tensor, lbfgs: &tt::Optimizer, fail_at: usize| -> Result<f64> {
        let mut calls = 0;
        let loss = lbfgs.step_closure(|| {
            calls += 1;
            assert_ne!(calls, fail_at, "not today");
            lbfgs.zero_grad(true)?;
            let loss = rosenbrock(x)?;
            loss.backward()?;
            Ok(loss)
        })?;
        loss.item()
    };
    let (x, lbfgs) = minimizer(&start)?;
    assert!((step(&x, &lbfgs, 0)? - 281.7).abs() < 1e-9);
    assert!(step(&x, &lbfgs, 0)? < 4.0);
    let (before, state) = (x.to_vec::<f64>()?, lbfgs.state_dict()?);
    assert_eq!(step(&x, &lbfgs, 3).unwrap_err().status, tt::Status::Callback);
    assert_eq!(x.to_vec::<f64>()?, before);
    assert_eq!(lbfgs.step().unwrap_err().status, tt::Status::InvalidArg);

    let (other, again) = minimizer(&before)?;
    again.load_state_dict(&state)?;
    assert_eq!(step(&x, &lbfgs, 0)?, step(&other, &again, 0)?);
    assert_eq!(x.to_vec::<f64>()?, other.to_vec::<f64>()?);
    for _ in 0..5 {
        step(&x, &lbfgs, 0)?;
    }
    assert!(x.to_vec::<f64>()?.iter().all(|v| (v - 1.0).abs() < 1e-6));
    Ok(())
}

#[test]
fn adafactor_and_muon_resume_from_their_state() -> Result<()> {
    let start = [1.0f64, -2.0, 0.5, 3.0];
    let makers: [fn(&Tensor) -> Result<tt::Optimizer>; 2] = [
        |w| optim::adafactor([w]),
        |w| optim::muon_with([w], optim::MuonOpts::new().adjust_lr_fn(tt::AdjustLr::Original)),
    ];
    for make in makers {
        let leaf =
            |values: &[f64]| Tensor::from(values).view(&[2, 2])?.detach()?.requires_grad_(true);
        let step = |w: &Tensor, opt: &tt::Optimizer| -> Result<()> {
            opt.zero_grad(true)?;
            (w * w).sum()?.backward()?;
            opt.step()
        };
        let w = leaf(&start)?;
        let opt = make(&w)?;
        step(&w, &opt)?;
        let other = leaf(&w.to_vec::<f64>()?)?;
        let again = make(&other)?;
        again.load_state_dict(&opt.state_dict()?)?;
        step(&w, &opt)?;
        step(&other, &again)?;
        assert_eq!(w.to_vec::<f64>()?, other.to_vec::<f64>()?);
        assert!((&w * &w).sum()?.item::<f64>()? < 14.25);
    }
    Ok(())
}

#[test]
fn a_copy_follows_the_average_of_its_model() -> Result<()> {
    let model = nn::linear(2, 1)?;
    let follower = model.copy()?;
    let of = |m: &tt::Module| m.get_tensor("weight")?.expect("a weight").to_vec::<f32>();
    let (before, decay) = (of(&model)?, 0.75);
    let sgd = optim::sgd_with(&model.parameters()?, optim::SgdOpts::new().lr(1.0))?;
    model.call(&tt::ones(&[1, 2])?)?.sum()?.backward()?;
    sgd.step()?;
    follower.average(&model, 1.0 - decay, false)?;
    for (average, (old, new)) in of(&follower)?.iter().zip(before.iter().zip(of(&model)?)) {
        assert!((average - (old * 0.75 + new * 0.25)).abs() < 1e-6);
    }
    Ok(())
}

#[test]
fn a_plateau_lowers_the_rate() -> Result<()> {
    let w = Tensor::from([1.0f64]).requires_grad_(true)?;
    let sgd = optim::sgd_with([&w], optim::SgdOpts::new().lr(1.0))?;
    let opts = lr::ReduceOnPlateauOpts::new().factor(0.5).patience(0);
    let schedule = lr::reduce_on_plateau_with(&sgd, opts)?;
    for loss in [3.0, 2.0, 2.0] {
        schedule.step_metric(loss)?;
    }
    assert_eq!(schedule.get_last_lr()?, [0.5]);
    assert_eq!(schedule.step().unwrap_err().status, tt::Status::InvalidArg);
    Ok(())
}

#[test]
fn compiled_step() -> Result<()> {
    let train = |compiled: bool| -> Result<Vec<f32>> {
        tt::manual_seed(5)?;
        let model = nn::linear(3, 2)?;
        let optimizer = optim::adam(&model.parameters()?)?;
        let step = move |x: &[Tensor]| {
            optimizer.zero_grad(true)?;
            let y = model.call(&x[0])?;
            let loss = y.mul(&y)?.mean()?;
            loss.backward()?;
            optimizer.step()?;
            Ok(vec![loss.detach()?])
        };
        let inputs: Vec<Tensor> = (0..6)
            .map(|k| Tensor::from([k as f32, 1.0, -2.0]).reshape(&[1, 3]))
            .collect::<Result<_>>()?;
        if !compiled {
            return inputs.iter().map(|x| step(std::slice::from_ref(x))?[0].item()).collect();
        }
        let step = tt::compile(step, 8)?;
        let losses = inputs.iter().map(|x| step.call(&[x])?[0].item()).collect();
        assert_eq!(
            step.info()?,
            tt::CompiledInfo { records: 1, replays: 5, runs: 1, reason: None }
        );
        step.reset()?;
        assert_eq!(step.info()?.records, 0);
        losses
    };
    assert_eq!(train(true)?, train(false)?);
    // What is read from the memory would be frozen in a record.
    let first = |x: &[Tensor]| {
        // SAFETY: nothing writes to the memory.
        let factor = unsafe { x[0].as_slice::<f32>()? }[0];
        Ok(vec![x[0].mul_scalar(factor)?])
    };
    let scaled = tt::compile(first, 8)?;
    for k in 1..4 {
        assert_eq!(scaled.call(&[floats(&[k as f32])])?[0].item::<f32>()?, (k * k) as f32);
    }
    assert_eq!(scaled.info()?.replays, 0);
    assert!(tt::graph::capture(first, &[floats(&[2.0])]).is_err());
    let failing = tt::compile(|x| Ok(vec![x[0].matmul(&x[0])?]), 8)?;
    assert!(failing.call(&[Tensor::from([[1.0f32, 2.0]])]).is_err());
    Ok(())
}

#[test]
fn gradients_of_a_compiled_model() -> Result<()> {
    tt::manual_seed(5)?;
    let model = nn::linear(3, 2)?;
    let layer = model.clone();
    let compiled = tt::compile(move |x| Ok(vec![layer.call(&x[0])?.tanh()?]), 8)?;
    for k in 1..5 {
        let x = Tensor::from([k as f32, 1.0, -2.0]).reshape(&[1, 3])?;
        let mut gradients = Vec::new();
        for out in [model.call(&x)?.tanh()?, compiled.call(&[&x])?.remove(0)] {
            model.zero_grad()?;
            out.sum()?.backward()?;
            gradients.push(model.parameters()?[0].grad()?.unwrap().to_vec::<f32>()?);
        }
        assert_eq!(gradients[0], gradients[1]);
    }
    assert_eq!(compiled.info()?.replays, 3);
    Ok(())
}

#[test]
fn a_state_that_does_not_fit_a_schedule_changes_nothing() -> Result<()> {
    let sgd = optim::sgd([&tt::ones(&[2])?.requires_grad_(true)?])?;
    let schedule = tt::lr::step(&sgd, 2)?;
    let mut state = schedule.state_dict()?;
    state.insert("last_epoch", &Tensor::from(7.0))?;
    state.insert("no such number", &Tensor::from(1.0))?;
    assert!(schedule.load_state_dict(&state).is_err());
    assert_eq!(schedule.state_dict()?.tensor("last_epoch")?.item::<i64>()?, 0);
    Ok(())
}

#[test]
fn a_state_that_does_not_fit_an_optimizer_changes_nothing() -> Result<()> {
    let w = tt::ones(&[2])?.requires_grad_(true)?;
    let adam = optim::adam([&w])?;
    let mut bad = StateDict::new()?;
    bad.insert("param_groups.0.lr", &Tensor::from(0.5f64))?;
    bad.insert("param_groups.0.initial_lr", &Tensor::from(0.5f64))?;
    bad.insert("state.0.exp_avg", &tt::zeros(&[2])?)?;
    bad.insert("state.0.exp_avg_sq", &tt::zeros(&[3])?)?;
    let names = adam.state_dict()?.names();
    assert_eq!(adam.load_state_dict(&bad).unwrap_err().status, tt::Status::Shape);
    assert_eq!(adam.state_dict()?.names(), names);
    assert_eq!((adam.lr()?, adam.num_tensors()), (1e-3, 0));
    w.sum()?.backward()?;
    adam.step()?;
    let before = adam.state_dict()?;
    assert!(adam.load_state_dict(&bad).is_err());
    for (name, value) in &before {
        let now = adam.state_dict()?.tensor(&name)?;
        assert_eq!(values_of(&now)?, values_of(&value)?, "{name}");
    }
    Ok(())
}

fn values_of(t: &Tensor) -> Result<Vec<f64>> {
    t.to_dtype(DType::F64)?.to_vec()
}

#[test]
fn averaged_models_and_statistics_of_all_batches() -> Result<()> {
    let model = nn::linear(2, 1)?;
    let mean = model.averaged_model()?;
    let moving = model.averaged_model_with(AveragedModelOpts::new().decay(0.75))?;
    for w in [2.0, 4.0, 6.0] {
        model.register_parameter("weight", Some(&tt::full(&[1, 2], w)?))?;
        mean.update_parameters(&model)?;
        moving.update_parameters(&model)?;
    }
    let weight = |m: &tt::Module| values(&m.get_tensor("module.weight")?.unwrap());
    assert_eq!(weight(&mean)?, [4.0, 4.0]);
    assert_eq!(weight(&moving)?, [3.375, 3.375]);
    assert_eq!(mean.get_tensor("n_averaged")?.unwrap().item::<i64>()?, 3);
    assert!(model.update_parameters(&mean).is_err());

    let norm = nn::batch_norm1d(1)?;
    norm.train(false)?;
    let batches = [floats(&[0.0, 2.0]).reshape(&[2, 1])?, floats(&[4.0, 10.0]).reshape(&[2, 1])?];
    let mut seen = 0;
    norm.update_bn(|| {
        for batch in &batches {
            assert!(norm.training() && !norm.forward(batch)?.requires_grad());
            seen += 1;
        }
        Ok(())
    })?;
    let running_mean = || values(&norm.get_tensor("running_mean")?.unwrap());
    assert_eq!((seen, running_mean()?, norm.training()), (2, vec![4.0], false));
    assert!(norm.update_bn(|| norm.forward(&tt::ones(&[3])?).map(drop)).is_err());
    assert_eq!(running_mean()?, [4.0]);
    Ok(())
}

#[test]
fn losses_with_layers_of_their_own() -> Result<()> {
    let loss = nn::adaptive_log_softmax_with_loss(16, 8, &[2, 5])?;
    let (x, target) = (tt::randn(&[5, 16])?, Tensor::from([0i64, 3, 7, 1, 4]));
    let found = loss.forward_list(&[&x, &target])?;
    let logs = loss.log_prob(&x)?;
    let picked = logs.gather(1, &target.unsqueeze(1)?)?.squeeze()?;
    assert!(found[0].allclose(&picked, 1e-5, 1e-5, false)?);
    assert!(found[1].allclose(&picked.mean()?.neg()?, 1e-5, 1e-5, false)?);
    let best = logs.argmax_with(ArgmaxOpts::new().dim(1))?;
    assert_eq!(loss.predict(&x)?.to_vec::<i64>()?, best.to_vec::<i64>()?);

    let whole = nn::linear_cross_entropy_loss(16, 8)?;
    let scores = whole.child(0)?.forward(&x)?;
    let all = whole.forward_list(&[&x, &target])?;
    assert!(all[0].allclose(&scores.cross_entropy(&target)?, 1e-5, 1e-5, false)?);
    Ok(())
}

#[test]
fn selective_checkpoints_keep_results() -> Result<()> {
    let w = floats(&[2.0, -1.0, 1.0, 3.0]).reshape(&[2, 2])?.requires_grad_(true)?;
    let x = floats(&[1.0, 2.0, -1.0, 0.5]).reshape(&[2, 2])?.requires_grad_(true)?;
    let gradients = |keep: &[&str]| -> Result<(Vec<f32>, usize)> {
        let held = w.clone();
        let f = move |x: &[Tensor]| Ok(vec![x[0].matmul(&held)?.tanh()?.sum()?]);
        let ops = keep.iter().map(|name| tt::Op::find(name)).collect::<Result<Vec<_>>>()?;
        let y = tt::selective_checkpoint(f, &[&x], &ops)?;
        let mut again = 0;
        let see = |op: &str, slot: &str, _| again += usize::from(op == "tanh" && slot == "cpu");
        let grad = tt::trace_dispatch(see, || tt::grad(&y[..1], &[&w], GradOpts::new()))??;
        Ok((values(grad[0].as_ref().unwrap())?, again))
    };
    let (want, computed) = gradients(&[])?;
    assert_eq!(computed, 1);
    assert_eq!(gradients(&["tanh"])?, (want.clone(), 0));
    assert_eq!(gradients(&["matmul"])?, (want, 1));
    Ok(())
}

#[test]
fn a_summary_writer_appends_to_its_file() -> Result<()> {
    let folder = temporary("runs");
    let writer = tt::SummaryWriter::new(&folder)?;
    let other = tt::SummaryWriter::new(&folder)?;
    assert_ne!(writer.path(), other.path());
    writer.add_scalar("loss", 0.5, 1)?;
    let size = || std::fs::metadata(writer.path()).unwrap().len();
    let before = size();
    writer.add_text("note", "hello", 1)?;
    writer.add_histogram("weights", &tt::randn(&[10])?, 1)?;
    writer.add_image("digit", &tt::zeros(&[1, 2, 2])?, -1)?;
    assert!(before > 60 && size() > before + 100);
    assert!(writer.add_scalar("a\0b", 0.5, 1).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}
