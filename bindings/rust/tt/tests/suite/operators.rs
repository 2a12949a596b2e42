use crate::{floats, values};
use tt::opts::*;
use tt::{
    idx, Complex, Context, DType, Device, Index, Result, Runtime, RuntimeOpts, Scalar, Tensor,
};

#[test]
fn methods_functions_and_options() -> Result<()> {
    let (a, b) = (floats(&[1.0, 2.0, 3.0]), floats(&[10.0, 20.0, 30.0]));
    assert_eq!(values(&a.add(&b)?)?, [11.0, 22.0, 33.0]);
    assert_eq!(values(&a.add_with(&b, AddOpts::new().alpha(2))?)?, [21.0, 42.0, 63.0]);
    assert_eq!(values(&a.add_scalar_with(1, AddScalarOpts::new().alpha(2.5))?)?, [3.5, 4.5, 5.5]);
    assert_eq!(a.sum()?.item::<f32>()?, 6.0);
    assert_eq!(a.sum_with(SumOpts::new().dtype(DType::F64))?.item::<f64>()?, 6.0);
    assert_eq!(values(&tt::cat(&[&a, &b])?)?, [1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
    assert_eq!(tt::stack_with(&[a.clone(), b.clone()], StackOpts::new().dim(1))?.shape(), [3, 2]);
    assert_eq!(values(&a.clamp(Some(1.5.into()), None)?)?, [1.5, 2.0, 3.0]);
    assert_eq!(a.gt(&floats(&[0.0, 2.0, 2.0]))?.to_vec::<bool>()?, [true, false, true]);
    assert_eq!(values(&a.gt_scalar(1.5)?.r#where(&a, &b)?)?, [10.0, 2.0, 3.0]);
    let (top, at) = a.topk_with(2, TopkOpts::new().largest(false))?;
    assert_eq!((values(&top)?, at.to_vec::<i64>()?), (vec![1.0, 2.0], vec![0, 1]));
    let (different, inverse, counts) = floats(&[2.0, 1.0, 2.0])
        .unique_with(UniqueOpts::new().return_inverse(true).return_counts(true))?;
    assert_eq!(
        (values(&different)?, inverse.to_vec::<i64>()?, counts.to_vec::<i64>()?),
        (vec![1.0, 2.0], vec![1, 0, 1], vec![1, 2])
    );
    assert_eq!(tt::einsum("i,j->ij", &[&a, &b])?.shape(), [3, 3]);
    assert_eq!(
        a.mse_loss_with(&b, MseLossOpts::new().reduction(tt::Reduction::Sum))?.item::<f32>()?,
        81.0 * (1.0 + 4.0 + 9.0)
    );
    assert_eq!(
        values(&tt::arange_with(0, 3, ArangeOpts::new().dtype(DType::F32))?)?,
        [0.0, 1.0, 2.0]
    );
    Ok(())
}

#[test]
fn lists_of_any_length() -> Result<()> {
    let x = tt::zeros(&[200, 2])?;
    assert_eq!(x.unbind()?.len(), 200);
    assert_eq!(x.split(3)?.iter().map(|t| t.size(0)).sum::<i64>(), 200);
    assert_eq!(tt::cat(&x.unbind()?)?.shape(), [400]);
    Ok(())
}

#[test]
fn in_place_and_into() -> Result<()> {
    let (a, b, out) = (floats(&[1.0, -2.0]), floats(&[3.0, 4.0]), floats(&[0.0, 0.0]));
    let version = a.version();
    unsafe {
        a.add_into(&b, &out)?;
        a.relu_()?;
        a.add_scalar_(1.0)?;
        a.mul_(&b)?;
    }
    assert_eq!((values(&a)?, values(&out)?), (vec![6.0, 4.0], vec![4.0, 2.0]));
    assert!(a.version() > version);
    unsafe { a.index_set(idx![0], &b.index_get(idx![1])?)? };
    assert_eq!(values(&a)?, [4.0, 4.0]);
    Ok(())
}

#[test]
fn traits_of_operators() -> Result<()> {
    let (a, b) = (floats(&[1.0, 2.0]), floats(&[4.0, 8.0]));
    assert_eq!(values(&(&a + &b * 2.0 - 1))?, [8.0, 17.0]);
    assert_eq!(values(&(1.0 - &a / &b))?, [0.75, 0.75]);
    assert_eq!(values(&(8.0 / b.clone()))?, [2.0, 1.0]);
    assert_eq!(values(&-(a.clone() * a.clone()))?, [-1.0, -4.0]);
    let (m, n) = (a.lt(&b)?, a.gt_scalar(1)?);
    assert_eq!((m & !&n).to_vec::<bool>()?, [true, false]);
    assert_eq!((Tensor::from_slice(&[7i64, -7], &[2])? % 4).to_vec::<i64>()?, [3, 1]);
    Ok(())
}

#[test]
fn elements_of_every_type() -> Result<()> {
    fn there_and_back<T: tt::Element + PartialEq + std::fmt::Debug + Send>(
        data: [T; 2],
    ) -> Result<()> {
        let copied = Tensor::from_slice(&data, &[2, 1])?;
        let taken = Tensor::from_vec(data.to_vec(), &[2])?;
        assert_eq!(
            (copied.dtype(), copied.to_vec::<T>()?, taken.to_vec::<T>()?),
            (T::DTYPE, data.to_vec(), data.to_vec())
        );
        assert_eq!(unsafe { taken.as_slice::<T>()? }, data);
        assert_eq!(T::DTYPE.size(), std::mem::size_of::<T>());
        Ok(())
    }
    there_and_back([true, false])?;
    there_and_back([1u8, 255])?;
    there_and_back([-1i8, 1])?;
    there_and_back([-300i16, 300])?;
    there_and_back([i32::MIN, i32::MAX])?;
    there_and_back([i64::MIN, i64::MAX])?;
    there_and_back([tt::F16(0x3c00), tt::F16(0)])?;
    there_and_back([tt::BF16(0x3f80), tt::BF16(0)])?;
    there_and_back([0.1f32, -2.5])?;
    there_and_back([0.1f64, -2.5])?;
    there_and_back([Complex { re: 1.0f32, im: 2.0 }, Complex::default()])?;
    there_and_back([Complex { re: 1.0f64, im: 2.0 }, Complex::default()])?;
    assert_eq!(tt::scalar(true, None)?.dtype(), DType::Bool);
    assert_eq!(
        tt::scalar(Complex { re: 0.0, im: 1.0 }, None)?.item_scalar()?,
        Scalar::Complex(Complex { re: 0.0, im: 1.0 })
    );
    assert_eq!(tt::scalar(3, Some(DType::F64))?.item::<f64>()?, 3.0);
    Ok(())
}

#[test]
fn slices_are_the_memory() -> Result<()> {
    let x = tt::arange_with(0, 6, ArangeOpts::new().dtype(DType::F64))?.reshape(&[2, 3])?;
    assert_eq!(unsafe { x.as_slice::<f64>()? }, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    unsafe { x.as_mut_slice::<f64>()?[4] = 40.0 };
    assert_eq!(x.index_get(idx![1, 1])?.item::<f64>()?, 40.0);
    assert_eq!(x.t()?.to_vec::<f64>()?, [0.0, 3.0, 1.0, 40.0, 2.0, 5.0]);
    assert!(
        unsafe { x.t()?.as_slice::<f64>() }.is_err() && unsafe { x.as_slice::<f32>() }.is_err()
    );
    assert_eq!(unsafe { tt::empty(&[0, 4])?.as_slice::<f32>()? }.len(), 0);
    let data = vec![1.0f32, 2.0, 3.0];
    let p = data.as_ptr();
    assert_eq!(Tensor::from_vec(data, &[3])?.data_ptr() as *const f32, p);
    let read_only = unsafe { Tensor::import(p as *mut f32, &[1], None, false, ())? };
    assert!(!read_only.is_writable() && unsafe { read_only.as_mut_slice::<f32>() }.is_err());
    Ok(())
}

#[test]
fn mixed_indices() -> Result<()> {
    let x = tt::arange_with(0, 24, ArangeOpts::new().dtype(DType::F32))?.reshape(&[2, 3, 4])?;
    assert_eq!(x.index_get(idx![-1, 0])?.to_vec::<f32>()?, [12.0, 13.0, 14.0, 15.0]);
    assert_eq!(x.index_get(idx![.., 1.., ..2])?.shape(), [2, 2, 2]);
    assert_eq!(x.index_get(idx![Index::Ellipsis, Index::New, 3])?.shape(), [2, 3, 1]);
    let every_other = Index::Slice { start: None, stop: None, step: 2 };
    assert_eq!(x.index_get(idx![0, 0, every_other])?.to_vec::<f32>()?, [0.0, 2.0]);
    let picked = Tensor::from_slice(&[1i64, 1], &[2])?;
    assert_eq!(x.index_get(idx![&picked, 0, 0])?.to_vec::<f32>()?, [12.0, 12.0]);
    assert_eq!(x.index_get(idx![&x.gt_scalar(20)?])?.to_vec::<f32>()?, [21.0, 22.0, 23.0]);
    Ok(())
}

#[test]
fn facts_and_text() -> Result<()> {
    let x = tt::ones_with(&[2, 3], OnesOpts::new().dtype(DType::I64))?;
    assert_eq!(
        (x.ndim(), x.numel(), x.size(-1), x.strides(), x.device()),
        (2, 6, 3, &[3, 1][..], Device::CPU)
    );
    assert_eq!(x.to_string(), "tensor([[1, 1, 1],\n        [1, 1, 1]])");
    assert_eq!(format!("{:?}", x), "Tensor(int64 [2, 3] on cpu)");
    let v = x.t()?;
    assert!(
        v.is_view()
            && !v.is_contiguous()
            && v.contiguous()?.is_contiguous()
            && x.is_leaf()
            && !x.requires_grad()
    );
    assert_eq!((v.storage_ptr(), v.offset(), v.storage_bytes()), (x.data_ptr(), 0, 48));
    assert_eq!(x.to_dtype(DType::F16)?.dtype().name(), "float16");
    assert_eq!(x.to_device("meta".parse()?)?.device(), Device::META);
    assert!(tt::zeros_with(&[], ZerosOpts::new().device(Device::META))?.data_ptr().is_null());
    assert!(x.copy()?.data_ptr() != x.data_ptr() && x.clone().data_ptr() == x.data_ptr());
    Ok(())
}

#[test]
fn random_numbers() -> Result<()> {
    tt::manual_seed(7)?;
    let first = tt::randn(&[4])?;
    tt::manual_seed(7)?;
    assert_eq!(values(&first)?, values(&tt::randn(&[4])?)?);
    let g = tt::Generator::new(3)?;
    let state = g.state()?;
    let (a, b) = (
        tt::rand_with(&[3], RandOpts::new().generator(&g))?,
        tt::rand_with(&[3], RandOpts::new().generator(&g))?,
    );
    assert_eq!(state, [3, 0]);
    assert_ne!(values(&a)?, values(&b)?);
    g.set_state(state)?;
    assert_eq!(values(&a)?, values(&tt::rand_with(&[3], RandOpts::new().generator(&g))?)?);
    Ok(())
}

fn mask() -> Result<Vec<f32>> {
    values(&tt::ones(&[64])?.dropout()?)
}

/// Returns the masks that three new contexts of a runtime draw, each on its own thread. The test
/// has its own runtime, since other tests seed the shared one.
fn masks_of_threads(runtime: &Runtime) -> [Vec<f32>; 3] {
    let contexts = [(); 3].map(|_| Context::new(Some(runtime)).unwrap());
    let threads = contexts.map(|mut c| std::thread::spawn(move || c.run(mask).unwrap()));
    threads.map(|t| t.join().unwrap())
}

#[test]
fn threads_draw_streams_of_their_own() -> Result<()> {
    let [a, b, c] = masks_of_threads(&Runtime::new(RuntimeOpts::new())?);
    assert!(a != b && a != c && b != c);
    Ok(())
}

#[test]
fn a_seed_repeats_the_streams_of_contexts() -> Result<()> {
    let runtime = Runtime::new(RuntimeOpts::new())?;
    let mut context = Context::new(Some(&runtime))?;
    let mut round_of = |seed: u64| {
        context.run(|| tt::manual_seed(seed)).unwrap();
        let own = context.run(mask).unwrap();
        let [a, b, c] = masks_of_threads(&runtime);
        [own, a, b, c]
    };
    let (first, again, other) = (round_of(3), round_of(3), round_of(4));
    assert_eq!(first, again);
    for (i, mask) in first.iter().enumerate() {
        assert!(!other.contains(mask) && !first[..i].contains(mask));
    }
    let state = runtime.rng_state()?;
    assert_eq!(state, [4, 3]);
    let next = masks_of_threads(&runtime);
    runtime.set_rng_state(state)?;
    assert_eq!(next, masks_of_threads(&runtime));
    assert_eq!(context.run(|| tt::Generator::current()?.state())?[0], 4);
    Ok(())
}

#[test]
fn runtimes_without_a_seed_differ() -> Result<()> {
    let draw = || -> Result<Vec<f32>> {
        Context::new(Some(&Runtime::new(RuntimeOpts::new())?))?.run(mask)
    };
    assert_ne!(draw()?, draw()?);
    Ok(())
}

#[test]
fn no_grad_is_a_mode_of_one_thread() {
    assert!(tt::no_grad(
        || !tt::grad_enabled() && std::thread::spawn(tt::grad_enabled).join().unwrap()
    ));
}
