//! Mixed indices: numbers, ranges, tensors, new dimensions.
use crate::handle::{shared, Handle};
use crate::Tensor;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use tt_sys as sys;

/// One item of a mixed index, usually for one dimension; [`idx!`](crate::idx) makes lists of them.
/// Negative positions count from the end.
#[derive(Clone, Debug)]
pub enum Index {
    /// One position; removes the dimension.
    At(i64),
    /// Positions from `start` up to, but not including, `stop`.
    Slice {
        /// None is the first position.
        start: Option<i64>,
        /// None is the end of the dimension.
        stop: Option<i64>,
        /// At least 1.
        step: i64,
    },
    /// A new dimension of size 1.
    New,
    /// All remaining dimensions.
    Ellipsis,
    /// A tensor of integers or of booleans.
    Tensor(Tensor),
}

impl Index {
    fn range(start: Option<i64>, stop: Option<i64>) -> Index {
        Index::Slice { start, stop, step: 1 }
    }
    pub(crate) fn raw(&self) -> sys::tt_index {
        let zero = sys::tt_index::default();
        match self {
            Index::At(i) => sys::tt_index { kind: sys::TT_IDX_INT, start: *i, ..zero },
            Index::Slice { start, stop, step } => sys::tt_index {
                kind: sys::TT_IDX_SLICE,
                has: start.is_some() as u32 | (stop.is_some() as u32) << 1 | 4,
                start: start.unwrap_or(0),
                stop: stop.unwrap_or(0),
                step: *step,
                ..zero
            },
            Index::New => sys::tt_index { kind: sys::TT_IDX_NONE, ..zero },
            Index::Ellipsis => sys::tt_index { kind: sys::TT_IDX_ELLIPSIS, ..zero },
            Index::Tensor(t) => sys::tt_index { kind: sys::TT_IDX_TENSOR, tensor: t.raw(), ..zero },
        }
    }
    /// # Safety
    /// The tensor of the index, if any, is live.
    pub(crate) unsafe fn of_raw(raw: &sys::tt_index) -> Index {
        let given = |bit: u32, v: i64| (raw.has & bit != 0).then_some(v);
        match raw.kind {
            sys::TT_IDX_INT => Index::At(raw.start),
            sys::TT_IDX_SLICE => Index::Slice {
                start: given(1, raw.start),
                stop: given(2, raw.stop),
                step: given(4, raw.step).unwrap_or(1),
            },
            sys::TT_IDX_TENSOR => {
                // SAFETY: guaranteed by the caller.
                let tensor = unsafe { shared(raw.tensor as *mut _) };
                tensor.map_or(Index::New, Index::Tensor)
            }
            sys::TT_IDX_ELLIPSIS => Index::Ellipsis,
            _ => Index::New,
        }
    }
}

/// Converts a position to i64. A `usize` beyond i64 is past the end of any dimension, too.
trait Position: Copy {
    fn position(self) -> i64;
}
impl Position for i64 {
    fn position(self) -> i64 {
        self
    }
}
impl Position for i32 {
    fn position(self) -> i64 {
        self.into()
    }
}
impl Position for usize {
    fn position(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

/// Returns the exclusive end of an inclusive range. After -1, the last position, it is None.
fn after(last: i64) -> Option<i64> {
    last.checked_add(1).filter(|stop| *stop != 0)
}

macro_rules! positions {
    ($($t:ty)*) => { $(
        impl From<$t> for Index {
            fn from(i: $t) -> Index {
                Index::At(i.position())
            }
        }
        impl From<Range<$t>> for Index {
            fn from(r: Range<$t>) -> Index {
                Index::range(Some(r.start.position()), Some(r.end.position()))
            }
        }
        impl From<RangeInclusive<$t>> for Index {
            fn from(r: RangeInclusive<$t>) -> Index {
                Index::range(Some(r.start().position()), after(r.end().position()))
            }
        }
        impl From<RangeFrom<$t>> for Index {
            fn from(r: RangeFrom<$t>) -> Index {
                Index::range(Some(r.start.position()), None)
            }
        }
        impl From<RangeTo<$t>> for Index {
            fn from(r: RangeTo<$t>) -> Index {
                Index::range(None, Some(r.end.position()))
            }
        }
        impl From<RangeToInclusive<$t>> for Index {
            fn from(r: RangeToInclusive<$t>) -> Index {
                Index::range(None, after(r.end.position()))
            }
        }
    )* };
}
positions!(i64 i32 usize);

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::range(None, None)
    }
}
impl From<&Tensor> for Index {
    fn from(t: &Tensor) -> Index {
        Index::Tensor(t.clone())
    }
}
impl From<Tensor> for Index {
    fn from(t: Tensor) -> Index {
        Index::Tensor(t)
    }
}

/// Makes a mixed index of integers, ranges, tensors and [`Index`], in the order of the dimensions.
///
/// ```
/// use tt::{idx, Index, Tensor};
/// let x = Tensor::from([[0.0f32, 1.0, 2.0], [3.0, 4.0, 5.0]]);
/// assert_eq!(x.index_get(idx![1, .., Index::New])?.shape(), [3, 1]);
/// assert_eq!(x.index_get(idx![Index::Ellipsis, 1..=2])?.to_vec::<f32>()?, [1.0, 2.0, 4.0, 5.0]);
/// let row = x.shape().len() - 1; // a usize
/// assert_eq!(x.index_get(idx![row, ..-1])?.to_vec::<f32>()?, [3.0, 4.0]);
/// # Ok::<(), tt::Error>(())
/// ```
#[macro_export]
macro_rules! idx {
    ($($i:expr),* $(,)?) => { &[$($crate::Index::from($i)),*] };
}
