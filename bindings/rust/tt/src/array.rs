//! Conversions of Rust numbers and arrays to tensors.
use crate::tensor::refuse;
use crate::{Element, Tensor};

#[track_caller]
fn copied<T: Element>(data: &[T], shape: &[usize]) -> Tensor {
    let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    match Tensor::from_slice(data, &shape) {
        Ok(t) => t,
        Err(e) => refuse(e),
    }
}

macro_rules! conversions {
    ($($t:ty)*) => { $(
        /// Makes a 0-dimensional tensor.
        impl From<$t> for Tensor {
            #[track_caller]
            fn from(value: $t) -> Tensor {
                copied(&[value], &[])
            }
        }
    )* };
}
conversions!(bool u8 i8 i16 i32 i64 f32 f64);

/// Copies the elements; their type determines the dtype. Panics if memory is exhausted, as `Vec`
/// does; [`Tensor::from_slice`] returns an error instead.
///
/// ```
/// use tt::Tensor;
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// assert_eq!((x.shape(), x.dtype()), (&[3, 2][..], tt::DType::F32));
/// assert_eq!(Tensor::from([1i64, 2]).dtype(), tt::DType::I64);
/// assert_eq!(Tensor::from(vec![[0i64, 1]; 3]).shape(), [3, 2]);
/// ```
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    #[track_caller]
    fn from(data: [T; N]) -> Tensor {
        copied(&data, &[N])
    }
}
impl<T: Element, const N: usize, const M: usize> From<[[T; N]; M]> for Tensor {
    #[track_caller]
    fn from(data: [[T; N]; M]) -> Tensor {
        let flat: Vec<T> = data.iter().flatten().copied().collect();
        copied(&flat, &[M, N])
    }
}
impl<T: Element, const N: usize, const M: usize, const L: usize> From<[[[T; N]; M]; L]> for Tensor {
    #[track_caller]
    fn from(data: [[[T; N]; M]; L]) -> Tensor {
        let flat: Vec<T> = data.iter().flatten().flatten().copied().collect();
        copied(&flat, &[L, M, N])
    }
}
impl<T: Element, const N: usize, const M: usize, const L: usize, const K: usize>
    From<[[[[T; N]; M]; L]; K]> for Tensor
{
    #[track_caller]
    fn from(data: [[[[T; N]; M]; L]; K]) -> Tensor {
        let flat: Vec<T> = data.iter().flatten().flatten().flatten().copied().collect();
        copied(&flat, &[K, L, M, N])
    }
}
impl<T: Element, const N: usize> From<&[T; N]> for Tensor {
    #[track_caller]
    fn from(data: &[T; N]) -> Tensor {
        copied(data, &[N])
    }
}
impl<T: Element> From<&Vec<T>> for Tensor {
    #[track_caller]
    fn from(data: &Vec<T>) -> Tensor {
        copied(data, &[data.len()])
    }
}
impl<T: Element> From<&[T]> for Tensor {
    #[track_caller]
    fn from(data: &[T]) -> Tensor {
        copied(data, &[data.len()])
    }
}
impl<T: Element, const N: usize> From<&[[T; N]]> for Tensor {
    #[track_caller]
    fn from(data: &[[T; N]]) -> Tensor {
        let flat: Vec<T> = data.iter().flatten().copied().collect();
        copied(&flat, &[data.len(), N])
    }
}
/// A row for each array.
impl<T: Element, const N: usize> From<Vec<[T; N]>> for Tensor {
    #[track_caller]
    fn from(data: Vec<[T; N]>) -> Tensor {
        Tensor::from(&data[..])
    }
}
/// Takes ownership of the vector without copying it.
impl<T: Element> From<Vec<T>> for Tensor {
    #[track_caller]
    fn from(data: Vec<T>) -> Tensor {
        let n = data.len() as i64;
        match Tensor::from_vec(data, &[n]) {
            Ok(t) => t,
            Err(e) => refuse(e),
        }
    }
}
