//! Groups of one process; tests/rust runs examples/rust/train_ddp.rs in several.
use crate::{floats, values};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use tt::{
    no_grad, BucketHook, Ddp, DdpOptions, Error, GradBucket, Group, GroupOptions, ReduceOp, Result,
    Status,
};

fn alone() -> Result<Group> {
    Group::new("", 0, 1, "", &GroupOptions::default())
}

#[test]
fn collectives_return_new_tensors() -> Result<()> {
    let (group, x) = (alone()?, floats(&[1.0, 2.0]).requires_grad_(true)?);
    assert_eq!((group.rank(), group.size(), group.backend().as_str()), (0, 1, ""));
    group.barrier()?;
    let results = [
        group.all_reduce(&x, ReduceOp::Sum)?,
        group.reduce(&x, ReduceOp::Max, 0)?,
        group.broadcast(&x, 0)?,
        group.all_to_all(&x)?,
        group.all_gather(&x)?.squeeze_dims(&[0])?,
    ];
    for result in results {
        assert!(!result.requires_grad(), "{result:?}");
        assert_ne!(result.data_ptr(), x.data_ptr());
        assert_eq!(values(&result)?, [1.0, 2.0]);
    }
    // SAFETY: nothing else uses the tensors meanwhile.
    unsafe {
        let y = x.detach()?.copy()?;
        group.start_all_reduce_(&y, ReduceOp::Mean)?.wait()?;
        group.scatter_into(Some(&x), &y, 0)?;
        group.gather_into(&x, Some(&y), 0)?;
        group.reduce_scatter_into(&x, &y, ReduceOp::Sum)?;
        assert_eq!(values(&y)?, [1.0, 2.0]);
        let works = [
            group.start_reduce_(&y, ReduceOp::Sum, 0)?,
            group.start_broadcast_(&y, 0)?,
            group.start_all_gather_into(&x, &y)?,
            group.start_reduce_scatter_into(&x, &y, ReduceOp::Max)?,
            group.start_all_to_all_into(&x, &y)?,
            group.start_gather_into(&x, Some(&y), 0)?,
            group.start_scatter_into(Some(&x), &y, 0)?,
            group.start_barrier()?,
        ];
        for work in works {
            work.wait()?;
        }
        assert_eq!(values(&y)?, [1.0, 2.0]);
    }
    assert!(group.split(-1, 0)?.is_none() && group.split(3, 0)?.unwrap().size() == 1);
    Ok(())
}

#[test]
fn wrong_calls_of_groups() -> Result<()> {
    let group = alone()?;
    assert!(group.broadcast(&floats(&[1.0]), 1).is_err());
    assert!(group.recv(&[2], tt::DType::F32, 5, 0).is_err());
    let e = Group::new("a\0b", 0, 2, "", &GroupOptions::default()).unwrap_err();
    assert_eq!(e.status, Status::InvalidArg);
    let nowhere = GroupOptions { library: Some("/nowhere/lib.so".into()), timeout: None };
    assert!(Group::new("gloo", 0, 2, "file:///nowhere", &nowhere).is_err());
    Ok(())
}

/// Halves gradients; fails in the call of this number.
struct Halve(Arc<AtomicUsize>, usize);
impl BucketHook for Halve {
    fn start(&self, bucket: &GradBucket) -> Result<()> {
        assert_eq!((bucket.index(), bucket.count(), bucket.failed()), (0, 1, false));
        assert_eq!(bucket.gradients()[0].shape(), bucket.parameters()[0].shape());
        if self.0.fetch_add(1, Ordering::SeqCst) == self.1 {
            return Err(Error::new(Status::Io, "the wire is cut"));
        }
        Ok(())
    }
    fn finish(&self, bucket: &GradBucket) -> Result<()> {
        // SAFETY: nothing else uses the buffer meanwhile.
        no_grad(|| unsafe { bucket.buffer().mul_scalar_(0.5) })
    }
}

#[test]
fn hooks_reduce_buckets() -> Result<()> {
    let (group, net) = (alone()?, tt::nn::linear(2, 1)?);
    let (ddp, x) = (Ddp::new(&net, &group, &DdpOptions::default())?, floats(&[1.0, 2.0]));
    let weight = &net.parameters()?[0];
    let backward = || -> Result<Vec<f32>> {
        net.zero_grad()?;
        net.forward(&x)?.sum()?.backward()?;
        values(&weight.grad()?.unwrap())
    };
    let calls = Arc::new(AtomicUsize::new(0));
    ddp.set_hook(Halve(calls.clone(), 1))?;
    assert_eq!(backward()?, [0.5, 1.0]);
    let e = backward().unwrap_err();
    assert!(format!("{e:?}").contains("the wire is cut"), "{e:?}");
    assert_eq!(backward()?, [0.5, 1.0]);
    ddp.clear_hook()?;
    assert_eq!((calls.load(Ordering::SeqCst), Arc::strong_count(&calls)), (3, 1));
    Ok(())
}
