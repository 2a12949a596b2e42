//! The feature `ndarray`: arrays and views convert to tensors, and tensors to arrays.
use ndarray::{arr2, s, Array1, Array3, ArrayD, IxDyn};
use tt::{DType, Result, Status, Tensor};

#[test]
fn arrays_there_and_back() -> Result<()> {
    let a = arr2(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let x = Tensor::from(&a);
    assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::F32));
    let back = ArrayD::<f32>::try_from(&(&x * 2.0))?;
    assert_eq!(back, (&a * 2.0).into_dyn());
    assert_eq!(Tensor::from(&a.t()).to_vec::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(Tensor::from(&a.slice(s![.., ..;-2])).to_vec::<f32>()?, [3.0, 1.0, 6.0, 4.0]);
    assert_eq!(Tensor::from(&Array3::<i64>::zeros((2, 0, 3))).shape(), [2, 0, 3]);
    assert_eq!(ArrayD::<u8>::try_from(&Tensor::from(7u8))?[IxDyn(&[])], 7);
    assert_eq!(ArrayD::<f64>::try_from(&x).unwrap_err().status, Status::Dtype);
    assert_eq!(ArrayD::<f32>::try_from(&x.transpose(0, 1)?)?.shape(), [3, 2]);
    assert_eq!(Tensor::from(&Array1::from(vec![true])).dtype(), DType::Bool);
    Ok(())
}
