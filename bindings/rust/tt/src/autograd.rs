//! Gradients of several tensors at once, and functions with gradients of the host's own.
use crate::callback::user;
use crate::error::{Error, Result};
use crate::gen::callbacks;
use crate::handle::*;
use crate::opts::{BackwardOpts, GradOpts};
use crate::{Status, Tensor};
use std::borrow::Borrow;
use std::ptr::null_mut;
use tt_sys as sys;

impl Tensor {
    /// Of a leaf: are gradients accumulated for it? Gives the tensor back.
    pub fn requires_grad_(self, on: bool) -> Result<Tensor> {
        unsafe { call(|c| sys::tt_requires_grad_(c, self.raw(), on as i32)).map(|_| self) }
    }
}

/// Adds the gradients of several tensors to the leaves' at once; None: 1.
pub fn backward_all(
    tensors: &[impl Borrow<Tensor>],
    gradients: &[Option<&Tensor>],
    opts: BackwardOpts,
) -> Result<()> {
    if gradients.len() != tensors.len() {
        return Err(Error::new(
            Status::InvalidArg,
            format!("{} gradients for {} tensors", gradients.len(), tensors.len()),
        ));
    }
    let (t, g) = (raw_list(tensors), opt_list(gradients));
    unsafe {
        call(|c| {
            sys::tt_backward_all(
                c,
                t.as_ptr() as *const *const _,
                g.as_ptr() as *const *const _,
                t.len() as i64,
                &opts.0,
            )
        })
    }
}

/// The gradients of outputs with respect to inputs; None where an unused one is allowed.
///
/// ```
/// let x = tt::Tensor::from_slice(&[1.0, 2.0], &[2])?.requires_grad_(true)?;
/// let y = x.pow_scalar(3)?.sum()?;
/// let g = tt::grad(&[&y], &[&x], tt::opts::GradOpts::new().create_graph(true))?[0].clone().unwrap();
/// let gg = tt::grad(&[g.sum()?], &[x], Default::default())?[0].clone().unwrap();
/// assert_eq!((g.to_vec::<f64>()?, gg.to_vec::<f64>()?), (vec![3.0, 12.0], vec![6.0, 12.0]));
/// # Ok::<(), tt::Error>(())
/// ```
pub fn grad(
    outputs: &[impl Borrow<Tensor>],
    inputs: &[impl Borrow<Tensor>],
    opts: GradOpts,
) -> Result<Vec<Option<Tensor>>> {
    let (y, x) = (raw_list(outputs), raw_list(inputs));
    let mut grads = vec![null_mut(); x.len()];
    let (py, px) = (y.as_ptr() as *const *const _, x.as_ptr() as *const *const _);
    unsafe {
        call(|c| {
            sys::tt_grad(c, py, y.len() as i64, px, x.len() as i64, &opts.0, grads.as_mut_ptr())
        })?
    };
    Ok(grads.into_iter().map(|g| unsafe { owned(g) }).collect())
}

/// A function with a gradient of its own; [`apply`] calls it. Both may run on any thread, forward unrecorded.
pub trait Function: Send + Sync + 'static {
    /// For messages and for the graph.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
    /// The results. What backward needs goes to `call.save`.
    fn forward(
        &self,
        call: &FunctionCall,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>>;
    /// One gradient per input, from those of the results.
    fn backward(
        &self,
        call: &FunctionCall,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>>;
}

/// One application of a [`Function`].
pub struct FunctionCall(pub(crate) *mut sys::tt_function);
impl FunctionCall {
    /// In forward: keeps tensors for backward.
    pub fn save(&self, tensors: &[&Tensor]) -> Result<()> {
        let list = raw_list::<Tensor>(tensors);
        unsafe {
            call(|c| {
                sys::tt_function_save(
                    c,
                    self.0,
                    list.as_ptr() as *const *const _,
                    list.len() as i64,
                )
            })
        }
    }
    /// In backward: the i-th that was kept.
    pub fn saved(&self, i: i64) -> Result<Tensor> {
        unsafe { call1(|c, out| sys::tt_function_saved(c, self.0, i, out)) }
    }
}

/// Calls a function that gives n_outs tensors.
///
/// ```
/// use tt::{FunctionCall, Result, Tensor};
/// struct Square;
/// impl tt::Function for Square {
///     fn forward(&self, call: &FunctionCall, x: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
///         let x = x[0].as_ref().unwrap();
///         call.save(&[x])?;
///         Ok(vec![Some(x * x)])
///     }
///     fn backward(&self, call: &FunctionCall, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
///         Ok(vec![Some(grads[0].as_ref().unwrap() * 2.0 * call.saved(0)?)])
///     }
/// }
/// let x = Tensor::from_slice(&[3.0f32], &[])?.requires_grad_(true)?;
/// tt::apply(Square, &[&x], 1)?[0].backward()?;
/// assert_eq!(x.grad()?.unwrap().item::<f32>()?, 6.0);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn apply<F: Function>(function: F, inputs: &[&Tensor], n_outs: usize) -> Result<Vec<Tensor>> {
    let (name, x, mut outs) =
        (c_string(function.name())?, raw_list::<Tensor>(inputs), vec![null_mut(); n_outs]);
    let def = callbacks::tt_function_def::table::<F>(name.as_ptr(), user(function));
    let (px, n) = (x.as_ptr() as *const *const _, x.len() as i64);
    unsafe {
        call(|c| sys::tt_function_apply(c, &def, px, n, outs.as_mut_ptr(), n_outs as i64))?;
        Ok(outs.into_iter().map(|t| Tensor::from_raw(t)).collect())
    }
}
