//! The types of the crate `half` as tensor elements, and conversions to this crate's types.
use crate::error::{Error, Result};
use crate::{DType, Element, Scalar, BF16, F16};
use ::half::{bf16, f16};

macro_rules! half_crate {
    ($($theirs:ident $ours:ident;)*) => { $(
        // SAFETY: both types have the same 16 bits.
        unsafe impl Element for $theirs {
            const DTYPE: DType = DType::$ours;
        }
        impl From<$theirs> for $ours {
            fn from(value: $theirs) -> $ours {
                $ours::from_bits(value.to_bits())
            }
        }
        impl From<$ours> for $theirs {
            fn from(value: $ours) -> $theirs {
                $theirs::from_bits(value.to_bits())
            }
        }
        impl From<$theirs> for Scalar {
            fn from(value: $theirs) -> Scalar {
                $ours::from(value).into()
            }
        }
        impl TryFrom<Scalar> for $theirs {
            type Error = Error;
            fn try_from(value: Scalar) -> Result<$theirs> {
                $ours::try_from(value).map(<$theirs>::from)
            }
        }
    )* };
}
half_crate! {
    f16 F16;
    bf16 BF16;
}
