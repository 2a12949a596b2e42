//! Conversions for types of other crates, each behind a feature with the crate's name.
#[cfg(feature = "half")]
mod half;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "num-complex")]
mod num_complex;
#[cfg(feature = "serde")]
mod serde;
