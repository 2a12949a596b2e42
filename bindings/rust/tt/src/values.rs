//! Plain values: elements, scalars, devices, indices.
use crate::error::{Error, Result};
use crate::handle::*;
use crate::{DType, DeviceType, Tensor};
use std::ops::{Range, RangeFrom, RangeFull, RangeTo};
use tt_sys as sys;

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}
/// The bits of a half-precision number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct F16(pub u16);
/// The bits of a bfloat16.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct BF16(pub u16);

/// Rust types that are elements of tensors.
///
/// # Safety
/// The type has the layout of DTYPE's elements.
pub unsafe trait Element: Copy + 'static {
    /// The dtype of such elements.
    const DTYPE: DType;
}
macro_rules! elements {
    ($($t:ty: $dtype:ident),*) => { $(unsafe impl Element for $t { const DTYPE: DType = DType::$dtype; })* };
}
elements!(bool: Bool, u8: U8, i8: I8, i16: I16, i32: I32, i64: I64, F16: F16, BF16: BF16, f32: F32, f64: F64, Complex<f32>: C64, Complex<f64>: C128);

impl DType {
    /// "float32", …
    pub fn name(self) -> String {
        unsafe { text_of(sys::tt_dtype_name(self as i32)).into_owned() }
    }
    /// Bytes of an element.
    pub fn size(self) -> usize {
        unsafe { sys::tt_dtype_size(self as i32) as usize }
    }
}

/// A number that takes part in dtype promotion by its kind alone.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(Complex<f64>),
}
macro_rules! scalars {
    ($($t:ty => $kind:ident as $to:ty),*) => { $(impl From<$t> for Scalar {
        #[inline]
        fn from(value: $t) -> Scalar {
            Scalar::$kind(value as $to)
        }
    })* };
}
scalars!(bool => Bool as bool, u8 => Int as i64, i8 => Int as i64, i16 => Int as i64, i32 => Int as i64, i64 => Int as i64, f32 => Float as f64, f64 => Float as f64);
impl From<Complex<f64>> for Scalar {
    fn from(value: Complex<f64>) -> Scalar {
        Scalar::Complex(value)
    }
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
    pub(crate) fn of_raw(s: sys::tt_scalar) -> Scalar {
        match s.kind {
            sys::TT_SCALAR_BOOL => Scalar::Bool(s.i != 0),
            sys::TT_SCALAR_INT => Scalar::Int(s.i),
            sys::TT_SCALAR_FLOAT => Scalar::Float(s.re),
            _ => Scalar::Complex(Complex { re: s.re, im: s.im }),
        }
    }
}

/// Where a tensor is. Text makes one, too: `"cuda:1".parse()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Device {
    pub kind: DeviceType,
    pub index: i32,
}
impl Device {
    /// The host.
    pub const CPU: Device = Device { kind: DeviceType::Cpu, index: 0 };
    /// Shapes and dtypes only, no data.
    pub const META: Device = Device { kind: DeviceType::Meta, index: 0 };
    /// How many devices of a kind there are.
    pub fn count(kind: DeviceType) -> Result<i32> {
        unsafe { call_value(|c, out| sys::tt_device_count(c, kind as i32, out)) }
    }
    pub(crate) fn raw(self) -> sys::tt_device {
        sys::tt_device { type_: self.kind as i32, index: self.index }
    }
    pub(crate) fn of_raw(d: sys::tt_device) -> Device {
        Device { kind: DeviceType::from_raw(d.type_).unwrap_or(DeviceType::Ext), index: d.index }
    }
}
impl std::str::FromStr for Device {
    type Err = Error;
    fn from_str(text: &str) -> Result<Device> {
        let text = c_string(text)?;
        unsafe {
            call_value(|c, out| sys::tt_device_parse(c, text.as_ptr(), out)).map(Device::of_raw)
        }
    }
}

/// One dimension's part of a mixed index; [`idx!`](crate::idx) makes lists of them.
#[derive(Clone)]
#[allow(missing_docs)]
pub enum Index {
    At(i64),
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    },
    /// A new dimension of size 1.
    New,
    /// As many whole dimensions as are left.
    Ellipsis,
    /// Integers or booleans.
    Tensor(Tensor),
}
impl Index {
    pub(crate) fn raw(&self) -> sys::tt_index {
        let mut raw = sys::tt_index::default();
        match self {
            Index::At(i) => (raw.kind, raw.start) = (sys::TT_IDX_INT, *i),
            Index::Slice { start, stop, step } => {
                (raw.kind, raw.has, raw.step) = (
                    sys::TT_IDX_SLICE,
                    start.is_some() as u32 | (stop.is_some() as u32) << 1 | 4,
                    *step,
                );
                (raw.start, raw.stop) = (start.unwrap_or(0), stop.unwrap_or(0));
            }
            Index::New => raw.kind = sys::TT_IDX_NONE,
            Index::Ellipsis => raw.kind = sys::TT_IDX_ELLIPSIS,
            Index::Tensor(t) => (raw.kind, raw.tensor) = (sys::TT_IDX_TENSOR, t.raw()),
        }
        raw
    }
    pub(crate) unsafe fn of_raw(raw: &sys::tt_index) -> Index {
        let given = |bit: u32, v: i64| (raw.has & bit != 0).then(|| v);
        match raw.kind {
            sys::TT_IDX_INT => Index::At(raw.start),
            sys::TT_IDX_SLICE => Index::Slice {
                start: given(1, raw.start),
                stop: given(2, raw.stop),
                step: given(4, raw.step).unwrap_or(1),
            },
            sys::TT_IDX_TENSOR => shared(raw.tensor as *mut _).map_or(Index::New, Index::Tensor),
            sys::TT_IDX_ELLIPSIS => Index::Ellipsis,
            _ => Index::New,
        }
    }
}
macro_rules! indices {
    ($($t:ty, $x:ident => $index:expr;)*) => { $(impl From<$t> for Index { fn from($x: $t) -> Index { $index } })* };
}
indices! {
    i64, i => Index::At(i);
    i32, i => Index::At(i as i64);
    &Tensor, t => Index::Tensor(t.clone());
    Range<i64>, r => Index::Slice { start: Some(r.start), stop: Some(r.end), step: 1 };
    RangeFrom<i64>, r => Index::Slice { start: Some(r.start), stop: None, step: 1 };
    RangeTo<i64>, r => Index::Slice { start: None, stop: Some(r.end), step: 1 };
    RangeFull, _r => Index::Slice { start: None, stop: None, step: 1 };
}

/// A mixed index as Python writes it: integers, ranges, tensors, [`Index`].
///
/// ```
/// use tt::{idx, Index};
/// let x = tt::arange_with(0, 12, tt::opts::ArangeOpts::new().dtype(tt::DType::F32))?.reshape(&[3, 4])?;
/// assert_eq!(x.index_get(idx![1, .., Index::New])?.shape(), [4, 1]);
/// assert_eq!(x.index_get(idx![Index::Ellipsis, 1..3])?.to_vec::<f32>()?, [1.0, 2.0, 5.0, 6.0, 9.0, 10.0]);
/// # Ok::<(), tt::Error>(())
/// ```
#[macro_export]
macro_rules! idx {
    ($($i:expr),* $(,)?) => { &[$($crate::Index::from($i)),*] };
}
