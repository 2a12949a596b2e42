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
//! **Handles** ([`Tensor`], [`Module`], …): clone is one reference more, not a copy. A [`Module`], [`Optimizer`] or [`Scheduler`] stays on its
//! thread ([`Transfer`] takes it to another one), a [`StateDict`] is changed by `&mut`, and what else is shared tt guards by itself: any
//! threads may use a [`Tensor`], [`Node`] or [`Generator`] at once, also its gradient and its hooks. Of two backwards through one graph at
//! once one fails with an [`Error`].
//!
//! What a call reads while another thread, a hook or a poll writes it (an optimizer's step, an accumulated gradient, a state that is loaded) are
//! numbers of before or of after, in any mix. `unsafe` is what could do worse: writing where slices may be alive or a running call has
//! checked what it reads (operators in place and `_into`, [`Tensor::index_set`], [`Op::call_mut`]), changing a tensor's memory or shape
//! ([`Tensor::set_data`], [`Module::to`]; [`Module::copy_to`] is safe), looking at memory ([`Tensor::as_slice`], …).
//!
//! **Threads**: each has a [`Context`] of its own (grad mode, random numbers, errors), made at its
//! first call; all share one [`Runtime`]. [`manual_seed`] makes the numbers of all reproducible.
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
mod share;
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
pub use share::*;
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
