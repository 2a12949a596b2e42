//! The complex numbers of the crate `num-complex` as tensor elements, and conversions to this
//! crate's type.
use crate::error::{Error, Result};
use crate::{Complex, DType, Element, Scalar};
use ::num_complex::Complex as Theirs;

// SAFETY: both are two f32, the real part first.
unsafe impl Element for Theirs<f32> {
    const DTYPE: DType = DType::C64;
}
// SAFETY: both are two f64, the real part first.
unsafe impl Element for Theirs<f64> {
    const DTYPE: DType = DType::C128;
}
impl<T> From<Theirs<T>> for Complex<T> {
    fn from(value: Theirs<T>) -> Complex<T> {
        Complex { re: value.re, im: value.im }
    }
}
impl<T> From<Complex<T>> for Theirs<T> {
    fn from(value: Complex<T>) -> Theirs<T> {
        Theirs { re: value.re, im: value.im }
    }
}
macro_rules! scalars {
    ($($t:ident)*) => { $(
        impl From<Theirs<$t>> for Scalar {
            fn from(value: Theirs<$t>) -> Scalar {
                Complex::from(value).into()
            }
        }
        impl TryFrom<Scalar> for Theirs<$t> {
            type Error = Error;
            fn try_from(value: Scalar) -> Result<Theirs<$t>> {
                Complex::try_from(value).map(Theirs::from)
            }
        }
    )* };
}
scalars!(f32 f64);
