use crate::{floats, temporary, values};
use std::time::Duration;
use tt::graph::{capture, capture_with, Arg, CaptureOptions, Graph, IndexItem, Passes, Role};
use tt::opts::SumDimOpts;
use tt::{nn, optim, Index, Op, Operator, Result, Status, Tensor, Value};

/// relu(x @ w), as rows, its softmax; with gelu in place of relu if requested.
fn net(x: &Tensor, w: &Tensor, with_gelu: bool) -> Result<Tensor> {
    let h = x.matmul(w)?;
    let h = if with_gelu { h.gelu()? } else { h.relu()? };
    h.view(&[2, 8])?.softmax(-1)
}
fn captured(x: &Tensor, w: &Tensor) -> Result<Graph> {
    capture(|x| Ok(vec![net(&x[0], w, false)?]), &[x])
}
fn find(g: &Graph, name: &str) -> usize {
    g.nodes().find(|n| n.name() == name).map(|n| n.index()).expect("the operator was called")
}
/// Replays a copy of the graph, since a plan prevents edits.
fn replays(g: &Graph, x: &Tensor, want: &Tensor) -> Result<()> {
    assert_eq!(values(&g.copy()?.plan()?.call(&[x])?[0])?, values(want)?);
    Ok(())
}

#[test]
fn a_graph_is_read() -> Result<()> {
    let (x, w) = (tt::randn(&[4, 3])?, tt::randn(&[3, 4])?);
    let g = captured(&x, &w)?;
    let (input, output) = (g.inputs()[0], g.outputs()[0]);
    let info = g.value(input)?;
    assert_eq!((info.shape, info.dtype, info.node), (vec![4, 3], tt::DType::F32, None));
    assert_eq!(g.storage(info.storage)?.role, Role::Input);
    assert_eq!(g.value(output)?.shape, [2, 8]);
    assert_eq!(g.num_nodes(), g.nodes().count());
    let relu = g.node(find(&g, "relu"))?;
    assert!(relu.schema().starts_with("relu(") && relu.written().is_empty());
    let args = relu.args()?;
    let before = match &args[0] {
        ("self", Arg::Value(v)) => *v,
        other => panic!("{other:?}"),
    };
    assert_eq!(g.users(before)?, [relu.index()]);
    let constants: Vec<_> =
        (0..).map_while(|i| g.storage(i).ok()).filter(|s| s.role == Role::Constant).collect();
    assert_eq!(values(constants[0].tensor.as_ref().unwrap())?, values(&w)?);
    assert!(g.to_string().contains("relu(self=%") && g.dot()?.starts_with("digraph"), "{g}");
    assert_eq!(g.node(99).unwrap_err().status, Status::InvalidArg);
    Ok(())
}

#[test]
fn a_graph_is_rewritten() -> Result<()> {
    let (x, w, other) = (tt::randn(&[4, 3])?, tt::randn(&[3, 4])?, tt::randn(&[4, 3])?);
    let mut g = captured(&x, &w)?;
    replays(&g, &other, &net(&other, &w, false)?)?;
    let relu = g.node(find(&g, "relu"))?;
    let (at, old, input) = (relu.index(), relu.results()[0].unwrap(), relu.args()?[0].1.clone());
    let new = g.insert(at, "gelu", &[input])?; // a composite
    g.replace_uses(old, new[0])?;
    g.remove(find(&g, "relu"))?;
    replays(&g, &other, &net(&other, &w, true)?)?;
    // Numbers, lists and defaults.
    let (at, out) = (g.num_nodes(), g.outputs()[0]);
    let sum = g.insert(at, "sum_dim", &[out.into(), vec![0i64].into(), true.into()])?[0];
    let at = g.num_nodes();
    let more = g.insert(at, "add", &[sum.into(), sum.into(), 0.5.into()])?[0];
    assert_eq!(g.value(more)?.shape, [1, 8]);
    g.set_outputs(&[more])?;
    let keep = SumDimOpts::new().keepdim(true);
    replays(&g, &other, &(net(&other, &w, true)?.sum_dim_with(&[0], keep)? * 1.5))
}

struct Pick;
impl Operator for Pick {
    fn compute(&self, args: &[Value]) -> Result<Vec<Option<Tensor>>> {
        match args {
            [Value::Tensor(x), Value::Index(at)] => Ok(vec![Some(x.index_get(at)?)]),
            _ => panic!("{args:?}"),
        }
    }
}

#[test]
fn mixed_indices_name_values() -> Result<()> {
    tt::register_op("graphs_pick(x: Tensor, at: Index[]) -> Tensor", Pick)?;
    let (x, rows) = (floats(&[1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2])?, Tensor::from([1i64, 0]));
    let at = vec![Index::Tensor(rows.clone()), Index::At(-1)];
    let pick = Op::find("graphs_pick")?;
    let run = |x: &[Tensor]| pick.call(&[Value::Tensor(x[0].clone()), Value::Index(at.clone())]);
    assert_eq!(values(&run(&[x.clone()])?[0])?, [4.0, 2.0]);
    let g = capture(run, &[&x])?;
    let (name, arg) = g.node(0)?.args()?[1].clone();
    match (name, &arg) {
        ("at", Arg::Index(items)) => match &items[..] {
            [IndexItem::Value(v), IndexItem::Index(Index::At(-1))] => {
                assert_eq!(g.storage(g.value(*v)?.storage)?.role, Role::Constant);
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    assert_eq!(values(&g.plan()?.call(&[&x])?[0])?, [4.0, 2.0]);
    let mut edited = g.copy()?;
    let made = edited.insert(1, "graphs_pick", &[g.inputs()[0].into(), arg])?;
    assert_eq!(edited.value(made[0])?.shape, [2]);
    Ok(())
}

#[test]
fn edits_that_do_not_fit_change_nothing() -> Result<()> {
    let (x, w) = (tt::randn(&[4, 3])?, tt::randn(&[3, 4])?);
    let mut g = captured(&x, &w)?;
    let before = g.to_string();
    let (input, at) = (g.inputs()[0], find(&g, "relu"));
    let wrong = g.insert(at, "matmul", &[input.into(), input.into()]).unwrap_err();
    assert_eq!((wrong.status, wrong.shapes.len()), (Status::Shape, 2), "{wrong}");
    assert_eq!(g.insert(at, "nothing", &[]).unwrap_err().status, Status::NotImplemented);
    assert!(g.insert(at, "relu", &["text".into()]).is_err());
    assert!(g.insert(at, "relu_", &[input.into()]).is_err());
    assert!(g.insert(at, "relu", &[Arg::Draw(0)]).is_err());
    assert!(g.insert(99, "relu", &[input.into()]).is_err());
    let tensor = vec![IndexItem::Index(Index::Tensor(x.clone()))];
    assert!(g.insert(at, "index_get", &[input.into(), tensor.into()]).is_err());
    assert!(g.remove(at).is_err() && g.remove(99).is_err());
    let plan = g.plan()?;
    assert!(g.remove(0).unwrap_err().message.contains("edit a copy"));
    drop(plan);
    assert_eq!(g.to_string(), before);
    let twice = capture(|x| Ok(vec![x[0].exp()? + x[0].exp()?]), &[&x])?;
    assert_eq!(twice.num_nodes(), 3);
    assert_eq!(twice.optimize(Passes::default())?.num_nodes(), 2);
    assert_eq!(twice.optimize(Passes::DCE | Passes::FOLD)?.num_nodes(), 3);
    Ok(())
}

#[test]
fn a_capture_that_fails_ends() -> Result<()> {
    let x = floats(&[1.0, 2.0]);
    let e = capture(|x| Ok(vec![x[0].reshape(&[7])?]), &[&x]).unwrap_err();
    assert_eq!(e.status, Status::Shape);
    let panicked = std::panic::catch_unwind(|| {
        capture(|_| -> Result<Vec<Tensor>> { panic!("in a capture") }, &[&floats(&[1.0])])
    });
    assert!(panicked.is_err());
    let reads = |x: &[Tensor]| {
        assert_eq!(x[0].sum()?.item::<f32>()?, 3.0);
        Ok(vec![x[0].exp()?])
    };
    assert!(capture(reads, &[&x]).is_err());
    let reading = CaptureOptions { allow_reads: true };
    assert!(capture_with(reads, &[&x], reading)?.num_nodes() > 0);
    let net = nn::linear(2, 1)?;
    let sgd = optim::sgd(net.parameters()?)?;
    let step = |x: &[Tensor]| {
        net.forward(&x[0])?.sum()?.backward()?;
        sgd.step()?;
        Ok(vec![])
    };
    let e = capture(step, &[&x]).unwrap_err();
    assert!(e.status == Status::NotImplemented && e.message.contains("optim_step"), "{e}");
    assert_eq!(capture(|x| Ok(vec![x[0].exp()?]), &[&x])?.num_nodes(), 1); // none is left
    Ok(())
}

#[test]
fn plans_run_on_other_threads() -> Result<()> {
    let (x, w) = (tt::randn(&[4, 3])?, tt::randn(&[3, 4])?);
    let dropped = std::thread::spawn({
        let (x, w) = (x.clone(), w.clone());
        // The thread, its context and its generator end before the graph is used.
        move || capture(|x| Ok(vec![net(&x[0], &w, false)?, x[0].dropout()?]), &[&x])
    });
    let g = dropped.join().unwrap()?;
    let want = values(&net(&x, &w, false)?)?;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut plan = g.plan().unwrap();
                for _ in 0..10 {
                    assert_eq!(values(&plan.call(&[&x]).unwrap()[0]).unwrap(), want);
                }
            });
        }
    });
    let mut plan = g.plan()?;
    let e = plan.call(&[&x, &x]).unwrap_err();
    assert_eq!(e.status, Status::InvalidArg);
    assert_eq!(plan.call(&[&w]).unwrap_err().status, Status::Shape);
    assert_eq!(plan.call(&[&x.to_dtype(tt::DType::F64)?]).unwrap_err().status, Status::Shape);
    // SAFETY: nothing else uses the plan's input.
    unsafe { plan.inputs()[0].copy_(&x)? };
    assert!(!plan.run_for(Duration::from_nanos(1))?);
    assert_eq!(plan.call(&[&x]).unwrap_err().status, Status::InvalidArg);
    while !plan.run_for(Duration::from_nanos(1))? {}
    assert_eq!(values(&plan.outputs()[0])?, want);
    drop(g);
    plan.run()?; // it keeps the graph alive
    Ok(())
}

#[test]
fn files_of_graphs() -> Result<()> {
    let (x, w) = (tt::randn(&[4, 3])?, tt::randn(&[3, 4])?);
    let (g, path) = (captured(&x, &w)?, temporary("graph"));
    g.save(&path)?;
    replays(&Graph::load(&path)?, &x, &net(&x, &w, false)?)?;
    std::fs::write(&path, b"no graph")?;
    assert_eq!(Graph::load(&path).unwrap_err().status, Status::Format);
    g.export_onnx(&path)?;
    assert!(std::fs::metadata(&path)?.len() > 100);
    let of_size =
        |rows, columns| capture(|x| Ok(vec![x[0].exp()?]), &[&tt::ones(&[rows, columns])?]);
    let (small, others) = (of_size(2, 3)?, [of_size(4, 3)?, of_size(2, 5)?, of_size(4, 5)?]);
    let others: Vec<_> = others.iter().collect();
    small.export_onnx_dims(&others, &["rows", "columns"], &path)?;
    assert!(std::fs::read(&path)?.windows(7).any(|part| part == b"columns"));
    assert!(small.export_onnx_dims(&others[..2], &["rows", "columns"], &path).is_err());
    assert!(small.export_onnx_dims(&others, &["rows", ""], &path).is_err());
    assert!(small.export_onnx_dims(&[&small], &["rows"], &path).is_err());
    std::fs::remove_file(&path)?;
    let dir = std::env::temp_dir();
    let name = format!("tt_net_{}", std::process::id());
    capture(|x| Ok(vec![x[0].matmul(&w)?.tanh()?]), &[&x])?.export_c(&dir, &name)?;
    for end in ["c", "h"] {
        let file = dir.join(format!("{name}.{end}"));
        assert!(std::fs::read_to_string(&file)?.contains(&name));
        std::fs::remove_file(&file)?;
    }
    assert!(g.export_c(&dir, "not an identifier").is_err());
    Ok(())
}
