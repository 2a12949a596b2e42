//! Tensors, operators, autograd, layers and optimizers: the safe form of tt, an embeddable
//! deep-learning core. Names, arguments and defaults are PyTorch's. `docs/rust.md` is a tour.
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
//! They are methods of [`Tensor`], or functions here where no tensor comes first. `name_with` takes
//! options, `name_` works in place, `name_into` writes into a tensor. `+ - * / %` and the like
//! panic at the caller's line where their methods return an [`Error`]. `a += b` puts the result in
//! the place of `a`; tensors that share memory with `a` keep their values.
//!
//! # Handles
//! [`Tensor`], [`Module`] and the like are handles: a clone is one reference more, not a copy. A
//! [`Module`], [`Optimizer`] or [`Scheduler`] stays on its thread, unless a module is shared for
//! inference ([`Module::freeze`]) or moved ([`Transfer`]). A [`StateDict`] is changed by `&mut`.
//! Everything else is guarded by tt: any threads may use a [`Tensor`], [`Node`] or [`Generator`] at
//! the same time, also its gradient and its hooks. Of two backwards through one graph at the same
//! time one fails with an [`Error`].
//!
//! Where a call reads what another thread, a hook or a poll writes meanwhile (an optimizer's step,
//! an accumulated gradient, a state that is loaded), it sees numbers from before and after. What
//! could do worse is `unsafe`: operators in place and `_into`, [`Tensor::index_set`],
//! [`Op::call_mut`], which write where slices may be alive or a running call has checked its input;
//! [`Tensor::set_data`] and [`Module::to`], which change memory or shapes ([`Module::copy_to`] is
//! safe); and views of memory such as [`Tensor::as_slice`].
//!
//! # Threads
//! Each has a [`Context`] of its own (grad mode, random numbers, errors), made at its first call.
//! All share one [`Runtime`]. [`manual_seed`] makes the numbers of all reproducible.
//!
//! # Closures
//! Closures that tt calls may fail or panic. The outer call then fails with [`Status::Callback`],
//! and the reason is its [`cause`](ErrorInfo::cause); [`Error::into_panic`] returns the panic.
//! Hooks of modules and closures of optimizers run on one thread and may change what they capture.
//! Hooks of tensors and nodes and [`Function`]s may run on several threads at once and are `Sync`:
//! ```compile_fail
//! let calls = std::cell::Cell::new(0);
//! let count = move |_: &tt::Tensor| { calls.set(calls.get() + 1); Ok(None) };
//! tt::ones(&[1]).unwrap().register_hook(count).unwrap();
//! ```
//!
//! # Features
//! None is on by default, and without them the crate has no dependencies.
//! - `half`, `num-complex`: the types of these crates are elements of tensors, and convert from and
//!   to [`F16`], [`BF16`] and [`Complex`].
//! - `ndarray`: `Tensor::from(&array)` and `ArrayD::try_from(&tensor)` copy.
//! - `serde`: [`Tensor`], [`StateDict`], [`DType`] and [`Device`] are serialized and deserialized.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs, missing_debug_implementations, clippy::undocumented_unsafe_blocks)]

mod array;
mod autograd;
mod callback;
mod context;
mod debug;
mod device;
mod dict;
mod dispatch;
mod error;
mod float16;
#[rustfmt::skip]
#[path = "gen/mod.rs"]
mod generated; // `gen` is a keyword of edition 2024
mod handle;
mod host;
mod index;
#[cfg(any(feature = "half", feature = "ndarray", feature = "num-complex", feature = "serde"))]
mod interop;
mod io;
mod layer;
mod module;
mod optimizer;
mod scalar;
mod tensor;
mod transfer;
mod watch;

pub use autograd::*;
pub use context::*;
pub use device::*;
pub use dict::*;
pub use dispatch::*;
pub use error::{Error, ErrorInfo, Result};
pub use float16::*;
pub use generated::*;
pub use handle::Handle;
pub use host::*;
pub use index::*;
pub use io::*;
pub use layer::*;
pub use module::*;
pub use scalar::*;
pub use tensor::*;
pub use transfer::*;
pub use watch::*;

/// What generated code uses.
mod prelude {
    pub(crate) use crate::generated::*;
    pub(crate) use crate::handle::*;
    pub(crate) use crate::opts::*;
    pub(crate) use crate::{Device, Index, Result, Scalar};
    pub(crate) use std::borrow::Borrow;
    pub(crate) use std::marker::PhantomData;
    pub(crate) use tt_sys as sys;
}
