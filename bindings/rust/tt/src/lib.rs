//! tt, an embeddable deep-learning core: tensors, operators, autograd, layers, optimizers. Names, arguments and defaults are PyTorch's.
//!
//! ```
//! # fn main() -> tt::Result<()> {
//! tt::manual_seed(0)?;
//! let x = tt::randn(&[64, 3])?;
//! let y = x.matmul(&tt::Tensor::from_slice(&[1.0f32, -2.0, 0.5], &[3, 1])?)?;
//! let net = tt::nn::linear(3, 1)?;
//! let sgd = tt::optim::sgd_with(&net.parameters()?, tt::optim::SgdOpts::new().lr(0.1))?;
//! for _ in 0..200 {
//!     sgd.zero_grad(true)?;
//!     net.call(&x)?.mse_loss(&y)?.backward()?;
//!     sgd.step()?;
//! }
//! assert!(net.call(&x)?.mse_loss(&y)?.item::<f32>()? < 1e-6);
//! # Ok(())
//! # }
//! ```
//! **Operators** are methods of [`Tensor`], or functions here where no tensor comes first. `name_with` takes options, `name_` works in
//! place, `name_into` writes into a tensor. `+ - * / %` and the like panic where their methods give an [`Error`].
//!
//! **Handles** ([`Tensor`], [`Module`], …): clone is one reference more, not a copy. Since clones alias, what writes into the memory of
//! tensors is `unsafe`. Calls that change an object and have no data of a tensor to write (`Module::train`, `Module::to`, `Optimizer::step`,
//! `Tensor::requires_grad_`, registering hooks and removing them, backward through its graph, drawing numbers from a shared [`Generator`],
//! …) are safe to write, but ask for exclusive access, which the compiler does not check: no other thread may use that object, or the
//! tensors that it changes, meanwhile. Backward through graphs of their own may run at once and end in the same leaves.
//!
//! **Threads**: each has a [`Context`] of its own (grad mode, random numbers, errors), made at its first call; all share one [`Runtime`].
//!
//! **Closures** that tt calls may fail or panic: the outer call then fails with [`Status::Callback`], the reason is its [`cause`](ErrorInfo::cause),
//! and [`Error::into_panic`] gives the panic back. Those that backward runs are `Sync`, as graphs may be on several threads:
//! ```compile_fail
//! let calls = std::cell::Cell::new(0);
//! tt::nn::relu().unwrap().register_full_backward_hook(move |_, _, _| { calls.set(calls.get() + 1); Ok(vec![]) }).unwrap();
//! ```
#![warn(missing_docs)]

mod autograd;
mod callback;
mod context;
mod dispatch;
mod error;
#[rustfmt::skip]
mod gen;
mod handle;
mod host;
mod io;
mod module;
mod tensor;
mod values;
mod watch;

pub use autograd::*;
pub use context::*;
pub use dispatch::*;
pub use error::{Error, ErrorInfo, Result};
pub use gen::*;
pub use handle::Handle;
pub use host::*;
pub use io::*;
pub use module::*;
pub use tensor::*;
pub use values::*;
pub use watch::*;

// what generated code uses
mod prelude {
    pub(crate) use crate::gen::*;
    pub(crate) use crate::handle::*;
    pub(crate) use crate::opts::*;
    pub(crate) use crate::values::*;
    pub(crate) use crate::Result;
    pub(crate) use std::borrow::Borrow;
    pub(crate) use std::marker::PhantomData;
    pub(crate) use tt_sys as sys;
}
