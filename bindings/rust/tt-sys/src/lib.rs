//! The C API of tt: every handle, struct, constant and function of its headers, under its C name.
//! `tt.h` documents the contracts; the crate `tt` is the safe interface.
#![allow(non_camel_case_types, non_snake_case)] // the names are those of C
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_debug_implementations, clippy::undocumented_unsafe_blocks)]

use std::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_void};

/// The version of the headers from which this crate was generated. It requires a library of the
/// same major and minor version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

macro_rules! handles {
    ($($name:ident)*) => { $(
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name {
            _private: [u8; 0],
            _marker: PhantomData<(*mut u8, PhantomPinned)>,
        }
    )* };
}

// Options and arguments that are all zero count as absent.
macro_rules! zeroed {
    ($($name:ident)*) => { $(
        impl Default for $name {
            #[inline]
            fn default() -> $name {
                // SAFETY: these structs have numbers and pointers, which may be 0.
                unsafe { std::mem::zeroed() }
            }
        }
    )* };
}

include!("declarations.rs");
