//! Numbers outside of tensors, and the element types of tensors.
use crate::error::{Error, Result};
use crate::handle::text_of;
use crate::{DType, Status, BF16, F16};
use std::fmt;
use tt_sys as sys;

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// Real part.
    pub re: T,
    /// Imaginary part.
    pub im: T,
}

/// A Rust type of tensor elements.
///
/// # Safety
/// The type has the layout of elements of `DTYPE`.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The dtype of these elements.
    const DTYPE: DType;
}
macro_rules! elements {
    ($($t:ty: $dtype:ident),* $(,)?) => { $(
        // SAFETY: both are the same C type.
        unsafe impl Element for $t {
            const DTYPE: DType = DType::$dtype;
        }
    )* };
}
elements!(
    bool: Bool,
    u8: U8,
    i8: I8,
    i16: I16,
    i32: I32,
    i64: I64,
    F16: F16,
    BF16: BF16,
    f32: F32,
    f64: F64,
    Complex<f32>: C64,
    Complex<f64>: C128,
    u16: U16,
    u32: U32,
    u64: U64,
);

impl<T> Complex<T> {
    /// Makes a complex number.
    pub const fn new(re: T, im: T) -> Complex<T> {
        Complex { re, im }
    }
}

impl DType {
    /// Returns the name, such as "float32".
    pub fn name(self) -> String {
        // SAFETY: the string is valid forever.
        unsafe { text_of(sys::tt_dtype_name(self as i32)).into_owned() }
    }
    /// Returns the size of an element in bytes.
    pub fn size(self) -> usize {
        // SAFETY: takes any number.
        unsafe { sys::tt_dtype_size(self as i32) as usize }
    }
}
impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}
/// Parses a name such as "float32".
impl std::str::FromStr for DType {
    type Err = Error;
    fn from_str(name: &str) -> Result<DType> {
        let dtype = (1..).map_while(DType::from_raw).find(|dtype| dtype.name() == name);
        dtype.ok_or_else(|| Error::new(Status::InvalidArg, format!("no dtype is named {:?}", name)))
    }
}

/// A number used as an operand with tensors. Only its kind takes part in dtype promotion.
///
/// It converts from all number types of Rust, and to those that represent its value exactly:
/// ```
/// use tt::Scalar;
/// assert_eq!(Scalar::from(2.5f32), Scalar::Float(2.5));
/// assert_eq!(u8::try_from(Scalar::from(7usize))?, 7);
/// assert!(u8::try_from(Scalar::Int(-1)).is_err());
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A complex number.
    Complex(Complex<f64>),
}

impl Scalar {
    pub(crate) fn raw(self) -> sys::tt_scalar {
        let zero = sys::tt_scalar::default();
        match self {
            Scalar::Bool(v) => sys::tt_scalar { kind: sys::TT_SCALAR_BOOL, i: v as i64, ..zero },
            Scalar::Int(i) => sys::tt_scalar { kind: sys::TT_SCALAR_INT, i, ..zero },
            Scalar::Float(re) => sys::tt_scalar { kind: sys::TT_SCALAR_FLOAT, re, ..zero },
            Scalar::Complex(v) => {
                sys::tt_scalar { kind: sys::TT_SCALAR_COMPLEX, re: v.re, im: v.im, ..zero }
            }
        }
    }
    #[inline]
    pub(crate) fn of_raw(s: &sys::tt_scalar) -> Scalar {
        match s.kind {
            sys::TT_SCALAR_BOOL => Scalar::Bool(s.i != 0),
            sys::TT_SCALAR_INT => Scalar::Int(s.i),
            sys::TT_SCALAR_FLOAT => Scalar::Float(s.re),
            _ => Scalar::Complex(Complex { re: s.re, im: s.im }),
        }
    }
    /// Returns the value as an f64; None for an imaginary part or an integer that f64 would round.
    #[inline]
    fn as_f64(self) -> Option<f64> {
        match self {
            Scalar::Bool(v) => Some(f64::from(u8::from(v))),
            Scalar::Int(v) => {
                let near = v as f64;
                (near as i64 == v && v != i64::MAX).then_some(near) // `as` saturates 2^63 to MAX
            }
            Scalar::Float(v) => Some(v),
            Scalar::Complex(v) => (v.im == 0.0).then_some(v.re),
        }
    }
    /// Returns the value as an integer; None if it is not one.
    #[inline]
    fn as_i128(self) -> Option<i128> {
        match self {
            Scalar::Bool(v) => Some(i128::from(v)),
            Scalar::Int(v) => Some(i128::from(v)),
            _ => self.as_f64().filter(|v| v.fract() == 0.0).map(|v| v as i128),
        }
    }
    #[cold]
    fn refused<T>(self) -> Error {
        let name = std::any::type_name::<T>();
        Error::new(Status::Dtype, format!("{} cannot be converted to {} exactly", self, name))
    }
}
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(v) => fmt::Display::fmt(v, f),
            Scalar::Int(v) => fmt::Display::fmt(v, f),
            Scalar::Float(v) => fmt::Display::fmt(v, f),
            Scalar::Complex(v) => write!(f, "{}{:+}i", v.re, v.im),
        }
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Scalar {
        Scalar::Bool(value)
    }
}
macro_rules! integers {
    ($($t:ty)*) => { $(
        impl From<$t> for Scalar {
            /// An integer beyond i64 becomes the nearest floating-point number.
            #[inline]
            fn from(value: $t) -> Scalar {
                #[allow(irrefutable_let_patterns)] // for small types
                if let Ok(v) = i64::try_from(value) {
                    Scalar::Int(v)
                } else {
                    Scalar::Float(value as f64)
                }
            }
        }
        impl TryFrom<Scalar> for $t {
            type Error = Error;
            #[inline]
            fn try_from(value: Scalar) -> Result<$t> {
                let integer = value.as_i128().and_then(|v| <$t>::try_from(v).ok());
                integer.ok_or_else(|| value.refused::<$t>())
            }
        }
    )* };
}
integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

impl From<f64> for Scalar {
    #[inline]
    fn from(value: f64) -> Scalar {
        Scalar::Float(value)
    }
}
impl From<f32> for Scalar {
    #[inline]
    fn from(value: f32) -> Scalar {
        Scalar::Float(value.into())
    }
}
impl From<F16> for Scalar {
    fn from(value: F16) -> Scalar {
        Scalar::Float(value.into())
    }
}
impl From<BF16> for Scalar {
    fn from(value: BF16) -> Scalar {
        Scalar::Float(value.into())
    }
}
impl From<Complex<f64>> for Scalar {
    fn from(value: Complex<f64>) -> Scalar {
        Scalar::Complex(value)
    }
}
impl From<Complex<f32>> for Scalar {
    fn from(value: Complex<f32>) -> Scalar {
        Scalar::Complex(Complex { re: value.re.into(), im: value.im.into() })
    }
}

impl TryFrom<Scalar> for bool {
    type Error = Error;
    fn try_from(value: Scalar) -> Result<bool> {
        match value.as_i128() {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(value.refused::<bool>()),
        }
    }
}
impl TryFrom<Scalar> for f64 {
    type Error = Error;
    #[inline]
    fn try_from(value: Scalar) -> Result<f64> {
        value.as_f64().ok_or_else(|| value.refused::<f64>())
    }
}
macro_rules! narrower_floats {
    ($($t:ty, $narrow:expr;)*) => { $(
        impl TryFrom<Scalar> for $t {
            type Error = Error;
            #[inline]
            fn try_from(value: Scalar) -> Result<$t> {
                if let Some(wide) = value.as_f64() {
                    let narrow: $t = $narrow(wide);
                    if f64::from(narrow).to_bits() == wide.to_bits() || wide.is_nan() {
                        return Ok(narrow);
                    }
                }
                Err(value.refused::<$t>())
            }
        }
    )* };
}
narrower_floats! {
    f32, |wide| wide as f32;
    F16, |wide| F16::from_f32(wide as f32);
    BF16, |wide| BF16::from_f32(wide as f32);
}
impl TryFrom<Scalar> for Complex<f64> {
    type Error = Error;
    fn try_from(value: Scalar) -> Result<Complex<f64>> {
        match value {
            Scalar::Complex(v) => Ok(v),
            _ => Ok(Complex { re: f64::try_from(value)?, im: 0.0 }),
        }
    }
}
impl TryFrom<Scalar> for Complex<f32> {
    type Error = Error;
    fn try_from(value: Scalar) -> Result<Complex<f32>> {
        let wide = Complex::<f64>::try_from(value)?;
        let part = |v: f64| f32::try_from(Scalar::Float(v)).map_err(|_| value.refused::<Self>());
        Ok(Complex { re: part(wide.re)?, im: part(wide.im)? })
    }
}
