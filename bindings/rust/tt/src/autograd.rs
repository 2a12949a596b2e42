//! Gradients of several tensors at once, and functions with custom gradients.
use crate::callback::{closure, drop_user, guarded, user};
use crate::error::{Error, Result};
use crate::generated::callbacks;
use crate::handle::*;
use crate::opts::{BackwardOpts, GradOpts};
use crate::{Device, Status, Tensor};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr::null_mut;
use tt_sys as sys;

/// # Gradients
impl Tensor {
    /// Sets whether autograd accumulates gradients for this leaf. Returns the tensor.
    pub fn requires_grad_(self, on: bool) -> Result<Tensor> {
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_requires_grad_(c, self.raw(), on as i32)).map(|_| self) }
    }
}

/// Runs backward from several tensors and accumulates the gradients of the leaves. A gradient of
/// None counts as 1.
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
    // SAFETY: the lists have the same length, and their handles are live.
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

/// Returns the gradients of outputs with respect to inputs. If unused inputs are allowed, their
/// gradient is None.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0]).requires_grad_(true)?;
/// let y = x.pow_scalar(3)?.sum()?;
/// let opts = tt::opts::GradOpts::new().create_graph(true);
/// let first = tt::grad(&[&y], &[&x], opts)?[0].clone().unwrap();
/// let second = tt::grad(&[first.sum()?], &[x], Default::default())?[0].clone().unwrap();
/// assert_eq!(first.to_vec::<f64>()?, [3.0, 12.0]);
/// assert_eq!(second.to_vec::<f64>()?, [6.0, 12.0]);
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
    // SAFETY: the lengths match the lists, and there is room for one gradient per input.
    unsafe {
        call(|c| {
            sys::tt_grad(c, py, y.len() as i64, px, x.len() as i64, &opts.0, grads.as_mut_ptr())
        })?
    };
    // SAFETY: each is null or a reference that we own.
    Ok(grads.into_iter().map(|g| unsafe { owned(g) }).collect())
}

/// A function with a custom gradient, for [`apply`]. Both methods may run on any thread; operators
/// called in forward are not recorded.
pub trait Function: Send + Sync + 'static {
    /// Returns the name shown in messages and in the graph.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
    /// Computes the results. `call.save` saves the tensors that backward needs.
    fn forward(
        &self,
        call: &FunctionCall,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>>;
    /// Computes the gradients of the inputs from those of the results.
    fn backward(
        &self,
        call: &FunctionCall,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>>;
    /// Whether the type has its own [`jvp`](Function::jvp). Otherwise tangents follow from
    /// `backward`.
    const HAS_JVP: bool = false;
    /// Computes the tangents of the results from those of the inputs, right after `forward`; None
    /// is 0.
    fn jvp(
        &self,
        _call: &FunctionCall,
        _tangents: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        Ok(Vec::new())
    }
    /// Whether the type has its own [`vmap`](Function::vmap). Otherwise `forward` and `backward`
    /// run on the shapes of one sample.
    const HAS_VMAP: bool = false;
    /// Computes the results for all `size` samples of a vmap at once, along dimension 0. Input i is
    /// `samples[i]` for all of them, or `shared[i]` if they share it.
    fn vmap(
        &self,
        _call: &FunctionCall,
        _size: i64,
        _samples: &[Option<Tensor>],
        _shared: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        Ok(Vec::new())
    }
}

/// One application of a [`Function`].
pub struct FunctionCall(pub(crate) *mut sys::tt_function);
impl FunctionCall {
    /// Saves tensors for backward and jvp. Call it in forward.
    pub fn save(&self, tensors: &[&Tensor]) -> Result<()> {
        let list = raw_list::<Tensor>(tensors);
        // SAFETY: the call is valid while forward or backward borrows it; the handles are live.
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
    /// Returns the i-th saved tensor. Call it in backward or jvp.
    pub fn saved(&self, i: i64) -> Result<Tensor> {
        // SAFETY: as in `save`.
        unsafe { call1(|c, out| sys::tt_function_saved(c, self.0, i, out)) }
    }
}

/// Applies a function with `n_outs` results and records it in the graph.
///
/// ```
/// use tt::{FunctionCall, Result, Tensor};
/// struct Square;
/// impl tt::Function for Square {
///     fn forward(
///         &self,
///         call: &FunctionCall,
///         x: &[Option<Tensor>],
///     ) -> Result<Vec<Option<Tensor>>> {
///         let x = x[0].as_ref().unwrap();
///         call.save(&[x])?;
///         Ok(vec![Some(x * x)])
///     }
///     fn backward(
///         &self,
///         call: &FunctionCall,
///         grads: &[Option<Tensor>],
///     ) -> Result<Vec<Option<Tensor>>> {
///         Ok(vec![Some(grads[0].as_ref().unwrap() * 2.0 * call.saved(0)?)])
///     }
/// }
/// let x = Tensor::from(3.0f32).requires_grad_(true)?;
/// tt::apply(Square, &[&x], 1)?[0].backward()?;
/// assert_eq!(x.grad()?.unwrap().item::<f32>()?, 6.0);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn apply<F: Function>(function: F, inputs: &[&Tensor], n_outs: usize) -> Result<Vec<Tensor>> {
    let (name, x, mut outs) =
        (c_string(function.name())?, raw_list::<Tensor>(inputs), vec![null_mut(); n_outs]);
    let def = callbacks::tt_function_def::table::<F>(name.as_ptr(), user(function));
    let (px, n) = (x.as_ptr() as *const *const _, x.len() as i64);
    // SAFETY: the table belongs to F; there is room for n_outs results, which we then own.
    unsafe {
        call(|c| sys::tt_function_apply(c, &def, px, n, outs.as_mut_ptr(), n_outs as i64))?;
        Ok(outs.into_iter().map(|t| Tensor::from_raw(t)).collect())
    }
}

/// The two functions passed to [`saved_tensors_hooks`]. P is the packed form of a tensor.
struct SavedHooks<P, K, U> {
    pack: K,
    unpack: U,
    kept: PhantomData<fn() -> P>,
}

/// # Safety
/// tt calls it as `tt_saved_tensors_def.pack`, with a `user` that points to `SavedHooks<P, K, U>`.
unsafe extern "C" fn pack<P, K: Fn(&Tensor) -> Result<P>, U>(
    hooks: *mut c_void,
    ctx: *mut sys::tt_ctx,
    t: *const sys::tt_tensor,
    packed: *mut *mut c_void,
) -> sys::tt_status {
    // SAFETY: guaranteed by the caller; a Tensor has the layout of its handle, which is borrowed
    // for the call.
    guarded(ctx, || unsafe {
        let hooks = closure::<SavedHooks<P, K, U>>(hooks);
        *packed = user((hooks.pack)(&*(&t as *const _ as *const Tensor))?);
        Ok(())
    })
}

/// # Safety
/// As for [`pack`]; `packed` is a result of `pack`, which tt keeps alive during the call.
unsafe extern "C" fn unpack<P, K, U: Fn(&P) -> Result<Tensor>>(
    hooks: *mut c_void,
    ctx: *mut sys::tt_ctx,
    packed: *mut c_void,
    out: *mut *mut sys::tt_tensor,
) -> sys::tt_status {
    // SAFETY: guaranteed by the caller.
    guarded(ctx, || unsafe {
        let hooks = closure::<SavedHooks<P, K, U>>(hooks);
        let packed = closure::<P>(packed);
        *out = (hooks.unpack)(&packed)?.into_raw();
        Ok(())
    })
}

/// Calls `f`, whose operators save copies on the CPU of the tensors that they need for backward.
/// Backward copies these to their devices again.
///
/// ```
/// let x = tt::Tensor::from([1.0f32, 2.0]).requires_grad_(true)?;
/// tt::save_on_cpu(|| x.mul(&x)?.sum())?.backward()?;
/// assert_eq!(x.grad()?.unwrap().to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn save_on_cpu<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    let pack = |t: &Tensor| {
        crate::no_grad(|| match t.device() {
            Device::CPU => Ok((Device::CPU, t.copy()?)),
            device => Ok((device, t.to_device(Device::CPU)?)),
        })
    };
    saved_tensors_hooks(pack, |(device, t): &(Device, Tensor)| t.to_device(*device), f)
}

/// Calls `f` with hooks on saved tensors: operators save `pack(t)` instead of a tensor t, and
/// backward, on any thread, calls `unpack` to get a tensor of t's shape and dtype. `pack` must not
/// change t. The innermost of nested calls applies.
///
/// ```
/// use tt::DType;
/// let x = tt::Tensor::from([1.0f32, 2.0]).requires_grad_(true)?;
/// let half = |t: &tt::Tensor| t.to_dtype(DType::F16);
/// let full = |t: &tt::Tensor| t.to_dtype(DType::F32);
/// let y = tt::saved_tensors_hooks(half, full, || x.mul(&x))?;
/// y.sum()?.backward()?;
/// assert_eq!(x.grad()?.unwrap().to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn saved_tensors_hooks<P, K, U, R>(
    pack: K,
    unpack: U,
    f: impl FnOnce() -> Result<R>,
) -> Result<R>
where
    P: Send + Sync + 'static,
    K: Fn(&Tensor) -> Result<P> + Send + Sync + 'static,
    U: Fn(&P) -> Result<Tensor> + Send + Sync + 'static,
{
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            // SAFETY: the matching push has succeeded. A failure cannot be reported here.
            let _ = unsafe { call(|c| sys::tt_saved_tensors_pop(c)) };
        }
    }
    let hooks = SavedHooks { pack, unpack, kept: PhantomData::<fn() -> P> };
    let def = sys::tt_saved_tensors_def {
        struct_size: std::mem::size_of::<sys::tt_saved_tensors_def>(),
        user: user(hooks),
        pack: Some(self::pack::<P, K, U>),
        unpack: Some(self::unpack::<P, K, U>),
        drop_packed: Some(drop_user::<P>),
        drop: Some(drop_user::<SavedHooks<P, K, U>>),
    };
    // SAFETY: the table belongs to the hooks, whose ownership passes to C.
    unsafe { call(|c| sys::tt_saved_tensors_push(c, &def))? };
    let _pop = Pop;
    f()
}
