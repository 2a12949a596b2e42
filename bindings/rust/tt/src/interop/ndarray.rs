//! Conversions of arrays of the crate `ndarray`. They copy: an array owns its memory exclusively,
//! tensors share theirs.
use crate::error::{Error, Result};
use crate::tensor::refuse;
use crate::{Element, Tensor};
use ::ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

/// Copies the elements of an array or a view with any strides. Panics if memory is exhausted, as
/// `Vec` does.
impl<T, S, D> From<&ArrayBase<S, D>> for Tensor
where
    T: Element,
    S: Data<Elem = T>,
    D: Dimension,
{
    #[track_caller]
    fn from(array: &ArrayBase<S, D>) -> Tensor {
        let shape: Vec<i64> = array.shape().iter().map(|n| *n as i64).collect();
        match Tensor::from_vec(array.iter().copied().collect::<Vec<T>>(), &shape) {
            Ok(tensor) => tensor,
            Err(e) => refuse(e),
        }
    }
}

/// Copies the elements. T must be the tensor's dtype.
impl<T: Element> TryFrom<&Tensor> for ArrayD<T> {
    type Error = Error;
    fn try_from(tensor: &Tensor) -> Result<ArrayD<T>> {
        let shape: Vec<usize> = tensor.shape().iter().map(|n| *n as usize).collect();
        ArrayD::from_shape_vec(IxDyn(&shape), tensor.to_vec()?).map_err(Error::other)
    }
}
