//! Tensors, operators, autograd, layers and optimizers: the safe interface of tt, an embeddable
//! deep-learning core. Names, arguments and defaults are those of PyTorch. `docs/rust.md` gives a
//! tour.
//!
//! ```
//! use tt::{nn, optim, Tensor};
//! # fn main() -> tt::Result<()> {
//! tt::manual_seed(0)?;
//! let x = tt::randn(&[64, 3])?;
//! let y = x.matmul(&Tensor::from([[1.0f32], [-2.0], [0.5]]))?;
//! let net = nn::linear(3, 1)?;
//! let sgd = optim::sgd_with(net.parameters()?, optim::SgdOpts::new().lr(0.1))?;
//! for _ in 0..200 {
//!     sgd.zero_grad(true)?;
//!     net.forward(&x)?.mse_loss(&y)?.backward()?;
//!     sgd.step()?;
//! }
//! assert!(net.forward(&x)?.mse_loss(&y)?.item::<f32>()? < 1e-6);
//! # Ok(())
//! # }
//! ```
//! # Operators
//! Operators are methods of [`Tensor`], or functions of this crate if their first argument is not a
//! tensor. `name_with` takes options, `name_` works in place, `name_into` writes into a tensor.
//! Rust's own operators (`+ - * / %`, …) panic at the caller's line where the methods return an
//! [`Error`]. `a += b` assigns a new tensor to `a`; tensors that shared memory with `a` keep their
//! values.
//!
//! # Handles
//! [`Tensor`], [`Module`] and the like are handles: a clone refers to the same object. Tensors,
//! nodes and generators are `Send` and `Sync`: threads may use them at the same time, with their
//! gradients and hooks. If two threads run backward through one graph at the same time, one fails
//! with an [`Error`]. A [`Module`], [`Optimizer`] or [`Scheduler`] stays on its thread;
//! [`Module::freeze`] shares a module for inference, and [`Transfer`] moves it. A [`StateDict`] is
//! modified through `&mut`.
//!
//! A call that reads a tensor while another thread, a hook or a poll writes it (an optimizer step,
//! gradient accumulation, loading a state) may see a mix of old and new numbers. Calls that could
//! read or write outside an object's memory, or alias a slice, are `unsafe`: in-place and `_into`
//! operators, [`Tensor::index_set`] and [`Op::call_mut`], which write memory; [`Tensor::set_data`]
//! and [`Module::to`], which replace memory and shapes ([`Module::copy_to`] is safe); and
//! [`Tensor::as_slice`] and the like, which borrow memory.
//!
//! # Threads
//! Each thread has a [`Context`] (grad mode, random numbers, errors), created on its first call.
//! All threads share one [`Runtime`]. [`manual_seed`] makes the random numbers of all threads
//! reproducible.
//!
//! # Closures
//! Closures that tt calls may fail or panic. The outer call then fails with [`Status::Callback`],
//! and the error of the closure is its [`cause`](ErrorInfo::cause); [`Error::into_panic`] returns
//! the panic. Module hooks and optimizer closures run on one thread and may be `FnMut`. Hooks of
//! tensors and nodes, and [`Function`]s, may run on several threads at once and must be `Sync`:
//! ```compile_fail
//! let calls = std::cell::Cell::new(0);
//! let count = move |_: &tt::Tensor| { calls.set(calls.get() + 1); Ok(None) };
//! tt::ones(&[1]).unwrap().register_hook(count).unwrap();
//! ```
//!
//! # Features
//! No feature is on by default; without features the crate has no dependencies.
//! - `half`, `num-complex`: the types of these crates are tensor elements, and convert from and
//!   to [`F16`], [`BF16`] and [`Complex`].
//! - `ndarray`: `Tensor::from(&array)` and `ArrayD::try_from(&tensor)` copy.
//! - `serde`: [`Tensor`], [`StateDict`], [`DType`] and [`Device`] are serialized and deserialized.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs, missing_debug_implementations, clippy::undocumented_unsafe_blocks)]

mod array;
mod autograd;
mod callback;
mod context;
mod data;
mod debug;
mod device;
mod dict;
mod dispatch;
mod distributed;
mod error;
mod float16;
pub mod graph;
#[rustfmt::skip]
#[path = "gen/mod.rs"]
mod generated; // `gen` is a keyword of edition 2024
mod handle;
mod hook;
mod host;
mod index;
pub mod init;
#[cfg(any(feature = "half", feature = "ndarray", feature = "num-complex", feature = "serde"))]
mod interop;
mod io;
mod layer;
mod module;
mod optimizer;
mod scalar;
mod sequence;
mod stream;
mod tensor;
mod transfer;
mod transform;
pub mod utils;
mod watch;

pub use autograd::*;
pub use context::*;
pub use data::*;
pub use device::*;
pub use dict::*;
pub use dispatch::*;
pub use distributed::*;
pub use error::{Error, ErrorInfo, Result};
pub use float16::*;
pub use generated::*;
pub use handle::Handle;
pub use hook::*;
pub use host::*;
pub use index::*;
pub use io::*;
pub use layer::{
    generate_square_subsequent_mask, parameter_dict, parameter_list, sequential, Buffer, Layer,
    Member,
};
pub use module::*;
pub use scalar::*;
pub use sequence::*;
pub use stream::*;
pub use tensor::*;
pub use transfer::*;
pub use transform::*;
pub use utils::{gradcheck, gradgradcheck, special, GradcheckOptions};
pub use watch::*;

/// What the macros of this crate use.
#[doc(hidden)]
pub mod __private {
    pub use crate::layer::{module_of_members, sequential_of, Kept, Members};
}

/// The names that generated code uses.
mod prelude {
    pub(crate) use crate::generated::*;
    pub(crate) use crate::handle::*;
    pub(crate) use crate::opts::*;
    pub(crate) use crate::{Device, Index, Result, Scalar};
    pub(crate) use std::borrow::Borrow;
    pub(crate) use std::marker::PhantomData;
    pub(crate) use tt_sys as sys;
}
