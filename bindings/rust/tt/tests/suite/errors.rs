use crate::{apart, floats};
use std::error::Error as _;
use std::panic::catch_unwind;
use tt::{DType, Device, Error, Index, RuntimeOpts, Status, Tensor};

fn fails<T>(result: tt::Result<T>) -> Error {
    result.err().expect("a failure")
}

#[test]
fn wrong_shapes_dtypes_and_indices() {
    let (a, b) = (tt::zeros(&[2, 3]).unwrap(), tt::zeros(&[4, 5]).unwrap());
    let e = fails(a.add(&b));
    assert_eq!(
        (e.status, e.op.as_str(), &e.shapes[..]),
        (Status::Shape, "add", &[vec![2, 3], vec![4, 5]][..])
    );
    assert!(e.to_string().starts_with("add: ") && e.cause.is_none() && e.source().is_none());
    let e = fails(a.matmul(&b));
    // The argument that does not match self.
    assert_eq!((e.argument.as_deref(), e.argument_index), (Some("other"), None));
    let e = fails(tt::optim::sgd([&a, &a]));
    assert_eq!(
        (e.status, e.argument.as_deref(), e.op.as_str()),
        (Status::InvalidArg, Some("params"), "optim_sgd")
    );
    assert_eq!(fails(a.to_dtype(DType::C64).unwrap().floor()).status, Status::NotImplemented);
    assert_eq!(fails(a.select(0, 2)).status, Status::Index);
    assert_eq!(fails(a.sum_dim(&[5])).status, Status::Index);
    assert_eq!(fails(a.reshape(&[7])).status, Status::Shape);
    assert_eq!(fails(tt::cat(&[] as &[Tensor])).status, Status::InvalidArg);
    assert_eq!(fails("tpu".parse::<Device>()).status, Status::InvalidArg);
    assert_eq!(fails(tt::einsum("i\0", &[&a])).status, Status::InvalidArg);
    assert_eq!(fails(a.item::<f32>()).op, "item");
}

#[test]
fn the_bindings_own_checks() {
    let e = fails(floats(&[1.0]).to_vec::<f64>());
    assert_eq!(
        (e.status, e.message.as_str()),
        (Status::Dtype, "the tensor is float32, not float64: `to_dtype` converts it")
    );
    let e = fails(Tensor::from_slice(&[1.0f32; 5], &[2, 3]));
    assert_eq!(
        (e.status, e.message.as_str()),
        (Status::Shape, "5 elements do not make a tensor of shape [2, 3]")
    );
    assert_eq!(fails(Tensor::from_slice::<f32>(&[], &[1 << 40, 1 << 40])).status, Status::Shape);
    assert_eq!(fails(Tensor::from_vec(vec![0u8; 3], &[-3])).status, Status::Shape);
    fails(Tensor::from_vec(vec![0u8; 3], &[-1, -3]));
    fails(Tensor::from_slice(&[0u8; 3], &[-1, -3]));
    fails(tt::jacobian(|_| Ok(vec![]), &[] as &[Tensor]));
    fails(tt::compile(|_| Ok(vec![]), -1).and_then(|f| f.call(&[floats(&[1.0])])));
    let nowhere = std::ptr::NonNull::<f32>::dangling().as_ptr();
    assert_eq!(
        fails(unsafe { Tensor::import(nowhere, &[0], Some(&[1, 1]), true, ()) }).status,
        Status::InvalidArg
    );
    assert_eq!(
        fails(tt::backward_all(&[floats(&[1.0])], &[], Default::default())).status,
        Status::InvalidArg
    );
}

#[test]
fn vectors_larger_than_memory() {
    for n in [1 << 46, 1 << 59] {
        let e = fails(tt::zeros(&[1]).unwrap().expand(&[n]).unwrap().to_vec::<f32>());
        assert_eq!(
            (e.status, e.message.clone()),
            (Status::Oom, format!("no memory for a vector of {} elements", n))
        );
    }
}

#[test]
fn results_whose_size_overflows() {
    let wide = |shape: &[i64]| tt::ones(&[1]).unwrap().expand(shape).unwrap();
    assert_eq!(fails(wide(&[1 << 32, 1]).add(&wide(&[1 << 32]))).status, Status::Shape);
    assert_eq!(fails(wide(&[1 << 60]).to_dtype(DType::C128)).status, Status::Shape);
    let m = tt::nn::linear(2, 2).unwrap();
    m.register_parameter("weight", None).unwrap();
    assert!(fails(m.call(&tt::ones(&[1, 2]).unwrap())).message.contains("Linear has no weight"));
}

#[test]
fn numbers_at_their_limits() {
    let x = tt::zeros(&[3, 4]).unwrap();
    let every = |step| x.index_get(&[Index::Slice { start: Some(1), stop: None, step }]);
    for step in [2, i64::MAX - 1, i64::MAX] {
        assert_eq!(every(step).unwrap().shape(), [1, 4]);
    }
    assert!([0, -1, i64::MIN].iter().all(|step| every(*step).is_err()));
    assert_eq!(x.index_get(tt::idx![i64::MIN..i64::MAX, ..]).unwrap().shape(), [3, 4]);
    assert_eq!(fails(x.index_get(tt::idx![i64::MIN])).status, Status::Index);
    assert_eq!(
        fails(tt::zeros(&[0]).unwrap().reshape(&[0, i64::MAX, i64::MAX])).status,
        Status::Shape
    );
    let sgd = tt::optim::sgd(&[x.requires_grad_(true).unwrap()]).unwrap();
    assert_eq!(
        (fails(sgd.number_at(i64::MIN)).status, fails(sgd.tensor_at(i64::MIN)).status),
        (Status::Index, Status::Index)
    );
    let schedule = tt::lr::exponential(&sgd, 0.5).unwrap();
    schedule.step_to(i64::MAX - 1).unwrap();
    schedule.step().unwrap();
    assert_eq!(
        (fails(schedule.step()).status, schedule.last_epoch()),
        (Status::InvalidArg, i64::MAX)
    );
    assert_eq!(fails(tt::nn::multihead_attention(1 << 61, 1)).status, Status::Shape);
}

#[test]
fn operators_panic_with_the_error() {
    let (a, b) = (tt::zeros(&[2]).unwrap(), tt::zeros(&[3]).unwrap());
    let panic = catch_unwind(|| &a + &b).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().starts_with("add: "));
}

#[test]
fn errors_go_to_other_threads() {
    fn take<T: Send + Sync + std::error::Error + 'static>(_: T) {}
    take(fails(tt::zeros(&[-1])));
    let boxed: Box<dyn std::error::Error + Send + Sync> = fails(tt::zeros(&[-1])).into();
    assert!(boxed.to_string().contains("-1"));
}

#[test]
fn no_memory_is_an_error() {
    apart(RuntimeOpts::new().memory_limit(1 << 20), || {
        let e = fails(tt::zeros(&[1 << 20]));
        assert_eq!(e.status, Status::Oom);
        assert!(tt::zeros(&[16]).is_ok());
        tt::set_memory_limit(0).unwrap();
        assert!(tt::zeros(&[1 << 20]).is_ok());
    });
}

#[test]
fn autograd_and_files() {
    let x = floats(&[1.0]).requires_grad_(true).unwrap();
    let y = (&x * &x).sum().unwrap();
    y.backward().unwrap();
    assert_eq!(fails(y.backward()).status, Status::Autograd);
    assert_eq!(fails(unsafe { x.relu_() }).status, Status::Autograd);
    assert_eq!(fails(floats(&[1.0]).register_hook(|_| Ok(None))).status, Status::Autograd);
    assert_eq!(fails(tt::SafeTensors::open("/nowhere/at/all")).status, Status::Io);
    let path = crate::temporary("broken");
    std::fs::write(&path, b"not a file of tensors").unwrap();
    assert_eq!(
        fails(unsafe { tt::SafeTensors::map(path.to_str().unwrap()) }).status,
        Status::Format
    );
    assert_eq!(fails(tt::gguf_load(&path)).status, Status::Format);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn cancellation() {
    let cancel = tt::Cancel::new().unwrap();
    let elsewhere = cancel.clone();
    std::thread::spawn(move || elsewhere.request()).join().unwrap();
    let e = tt::cancellable(&cancel, || fails(tt::zeros(&[2]).and_then(|x| x.exp()))).unwrap();
    assert_eq!(e.status, Status::Cancelled);
    assert!(tt::zeros(&[2]).unwrap().exp().is_ok());
    let outer = tt::Cancel::new().unwrap();
    let after = || {
        tt::cancellable(&cancel, || assert_eq!(fails(tt::zeros(&[2])).status, Status::Cancelled))
            .unwrap();
        assert!(tt::zeros(&[2]).is_ok());
        apart(RuntimeOpts::new(), || tt::cancellable(&cancel, || ()).unwrap());
        outer.request();
        fails(tt::zeros(&[2]))
    };
    assert_eq!(tt::cancellable(&outer, after).unwrap().status, Status::Cancelled);
    assert!(tt::zeros(&[2]).is_ok());
}
