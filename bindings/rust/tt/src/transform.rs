//! Transforms of functions of tensors, and mixed precision.
use crate::callback::{drop_user, user};
use crate::error::{Error, Result};
use crate::generated::callbacks;
use crate::handle::*;
use crate::opts::{GradOpts, TripletMarginWithDistanceLossOpts};
use crate::{enable_grad, grad, DType, DeviceType, GradScaler, Layer, Module, Op, Optimizer};
use crate::{StateDict, Status, Tensor};
use std::borrow::Borrow;
use std::mem::ManuallyDrop;
use std::os::raw::c_void;
use std::ptr::null_mut;
use std::thread::{self, ThreadId};
use tt_sys as sys;

/// The most results of a function. C has to know before the call.
const MAX_RESULTS: usize = 1024;

type DropFn = Option<unsafe extern "C" fn(*mut c_void)>;
type Outs = *mut *mut sys::tt_tensor;
type Inputs = *const *const sys::tt_tensor;

/// Passes a function of tensors to `run` in the form that C takes.
fn with_function<R>(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    run: impl FnOnce(sys::tt_fn, *mut c_void, DropFn) -> R,
) -> R {
    fn go<T: Fn(&[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>, R>(
        f: T,
        run: impl FnOnce(sys::tt_fn, *mut c_void, DropFn) -> R,
    ) -> R {
        run(Some(callbacks::tt_fn::<T>), user(f), Some(drop_user::<T>))
    }
    let optional = move |inputs: &[Option<Tensor>]| {
        let inputs: Vec<Tensor> = inputs.iter().flatten().cloned().collect();
        Ok(f(&inputs)?.into_iter().map(Some).collect())
    };
    go(optional, run)
}

/// Takes ownership of the handles that C has written to a list.
///
/// # Safety
/// The first n items are null or references that we own.
unsafe fn taken(list: &[*mut sys::tt_tensor], n: i64) -> Vec<Option<Tensor>> {
    // SAFETY: guaranteed by the caller.
    list[..n as usize].iter().map(|t| unsafe { owned(*t) }).collect()
}

/// Passes a function to `run` with room for its results, and takes these.
fn results(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    run: impl FnOnce(sys::tt_fn, *mut c_void, DropFn, Outs, i64, *mut i64) -> Result<()>,
) -> Result<Vec<Tensor>> {
    let (mut outs, mut n) = (vec![null_mut(); MAX_RESULTS], 0i64);
    with_function(f, |fun, user, drop| {
        run(fun, user, drop, outs.as_mut_ptr(), MAX_RESULTS as i64, &mut n)
    })?;
    // SAFETY: C has returned these references to us.
    Ok(unsafe { taken(&outs, n) }.into_iter().flatten().collect())
}

/// Calls `f`, and keeps none of the tensors that its operators need for backward: the first that is
/// read calls `f` again, with the same inputs, random numbers and autocast (Chen et al. 2016).
/// Gradients of any order, those of parameters that `f` uses among them, are as without a
/// checkpoint. `f` lives until backward needs it no more.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0]).requires_grad_(true)?;
/// let y = tt::checkpoint(|x| Ok(vec![x[0].exp()?.sin()?.sum()?]), &[&x])?;
/// y[0].backward()?;
/// let slope = x.exp()?.cos()? * x.exp()?;
/// assert_eq!(x.grad()?.unwrap().to_vec::<f64>()?, slope.to_vec::<f64>()?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn checkpoint<F>(f: F, inputs: &[impl Borrow<Tensor>]) -> Result<Vec<Tensor>>
where
    F: Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
{
    let x = raw_list(inputs);
    results(f, |fun, user, drop, outs, cap, n| {
        // SAFETY: the lengths match the lists, and the handles are live. C may call f on any thread
        // until it drops it.
        unsafe {
            call(|c| {
                sys::tt_checkpoint_function(
                    c,
                    fun,
                    user,
                    drop,
                    x.as_ptr() as Inputs,
                    x.len() as i64,
                    outs,
                    cap,
                    n,
                )
            })
        }
    })
}

/// Layers that backward calls again. They stay on their thread: on others they are neither called
/// nor dropped, but leaked.
struct Segment {
    layers: ManuallyDrop<Vec<Module>>,
    thread: ThreadId,
}
// SAFETY: other threads than the one of the layers do not touch them.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}
impl Segment {
    fn is_here(&self) -> bool {
        self.thread == thread::current().id()
    }
    fn run(&self, x: &Tensor) -> Result<Tensor> {
        if !self.is_here() {
            let why = "the layers of a checkpoint belong to another thread";
            return Err(Error::new(Status::Callback, why));
        }
        self.layers.iter().try_fold(x.clone(), |x, layer| layer.forward(&x))
    }
}
impl Drop for Segment {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: nothing uses the layers afterwards.
            unsafe { ManuallyDrop::drop(&mut self.layers) };
        }
    }
}

/// Calls layers in turn. They are divided into `segments` parts, of which all but the last are
/// [checkpoints](checkpoint). The layers belong to this thread: a backward on another one fails,
/// and a result that is dropped there leaks its layers.
///
/// ```
/// use tt::nn;
/// let layers = [nn::linear(4, 4)?, nn::tanh()?, nn::linear(4, 4)?, nn::tanh()?];
/// let x = tt::rand(&[2, 4])?.requires_grad_(true)?;
/// let y = tt::checkpoint_sequential(&layers, 2, &x)?;
/// assert!(y.equal(&tt::sequential(&layers)?.forward(&x)?)?);
/// y.sum()?.backward()?;
/// assert!(layers[0].get_tensor("weight")?.unwrap().grad()?.is_some());
/// # Ok::<(), tt::Error>(())
/// ```
pub fn checkpoint_sequential(layers: &[Module], segments: usize, input: &Tensor) -> Result<Tensor> {
    if segments < 1 || segments > layers.len().max(1) {
        let rule = format!("must be in [1, {}], the number of layers", layers.len().max(1));
        let why = format!("checkpoint_sequential: segments is {}: {}", segments, rule);
        return Err(Error::new(Status::InvalidArg, why));
    }
    let size = layers.len() / segments;
    let (first, last) = layers.split_at(size * (segments - 1));
    let mut x = input.clone();
    for part in first.chunks(size.max(1)) {
        let layers = ManuallyDrop::new(part.to_vec());
        let segment = Segment { layers, thread: thread::current().id() };
        x = checkpoint(move |x| Ok(vec![segment.run(&x[0])?]), &[&x])?.remove(0);
    }
    last.iter().try_fold(x, |x, layer| layer.forward(&x))
}

/// As [`checkpoint`], but keeps the results of some operators, so that the second call of `f` has
/// them without computing. An operator is one that `f` calls, or one of which that consists. Views,
/// and operators that write to their arguments, are always called again. Results that are kept must
/// not be written to.
///
/// ```
/// let w = tt::randn(&[2, 2])?.requires_grad_(true)?;
/// let kept = [tt::Op::find("matmul")?];
/// let f = {
///     let w = w.clone();
///     move |x: &[tt::Tensor]| Ok(vec![x[0].matmul(&w)?.tanh()?.sum()?])
/// };
/// let y = tt::selective_checkpoint(f, &[&tt::ones(&[2, 2])?], &kept)?;
/// y[0].backward()?; // computes tanh again, not the product
/// assert!(w.grad()?.is_some());
/// # Ok::<(), tt::Error>(())
/// ```
pub fn selective_checkpoint<F>(
    f: F,
    inputs: &[impl Borrow<Tensor>],
    ops: &[Op],
) -> Result<Vec<Tensor>>
where
    F: Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
{
    let x = raw_list(inputs);
    let ops: Vec<*const sys::tt_op> = ops.iter().map(Op::raw).collect();
    results(f, |fun, user, drop, outs, cap, n| {
        // SAFETY: the lengths match the lists, and the handles are live. C may call f on any thread
        // until it drops it.
        unsafe {
            call(|c| {
                sys::tt_selective_checkpoint_function(
                    c,
                    fun,
                    user,
                    drop,
                    x.as_ptr() as Inputs,
                    x.len() as i64,
                    ops.as_ptr(),
                    ops.len() as i64,
                    outs,
                    cap,
                    n,
                )
            })
        }
    })
}

/// Makes a loss of anchors, positive and negative examples: max(0, d(anchor, positive) - d(anchor,
/// negative) + margin). The distance d gets two tensors and returns a number for each pair of
/// vectors. Copies of the module share it.
///
/// ```
/// use tt::opts::TripletMarginWithDistanceLossOpts;
/// let opts = TripletMarginWithDistanceLossOpts::new().margin(2.0);
/// let distance = |a: &tt::Tensor, b: &tt::Tensor| a.sub(b)?.abs()?.sum_dim(&[-1]);
/// let loss = tt::triplet_margin_with_distance_loss(distance, opts)?;
/// let t = |x: [f64; 2]| tt::Tensor::from(x).reshape(&[1, 2]);
/// let y = loss.forward_list(&[t([0.0, 0.0])?, t([1.0, 2.0])?, t([0.0, 3.0])?])?;
/// assert_eq!(y[0].item::<f64>()?, 2.0);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn triplet_margin_with_distance_loss<F>(
    distance: F,
    opts: TripletMarginWithDistanceLossOpts,
) -> Result<Module>
where
    F: Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
{
    let pairs = move |x: &[Tensor]| Ok(vec![distance(&x[0], &x[1])?]);
    // SAFETY: the options are valid during the call, which takes ownership of the function. C may
    // call it on any thread until it drops it.
    with_function(pairs, |fun, user, drop| unsafe {
        call1(|c, out| {
            sys::tt_nn_triplet_margin_with_distance_loss(c, fun, user, drop, &opts.0, out)
        })
    })
}

/// Computes a vector-Jacobian product with one call of `f`. Returns the results and, for each
/// input, the product of the results' cotangents and the Jacobians; None for integers. Without
/// cotangents, the first result must have one element, and its cotangent is 1.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0]);
/// let (y, g) = tt::vjp(|x| Ok(vec![x[0].pow_scalar(3)?.sum()?]), &[&x], &[])?;
/// assert_eq!(y[0].item::<f64>()?, 9.0);
/// assert_eq!(g[0].as_ref().unwrap().to_vec::<f64>()?, [3.0, 12.0]);
/// # Ok::<(), tt::Error>(())
/// ```
#[doc(alias = "grad_and_value")]
pub fn vjp(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
    cotangents: &[Option<&Tensor>],
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    let (x, v) = (raw_list(inputs), opt_list(cotangents));
    let (mut outs, mut n) = (vec![null_mut(); MAX_RESULTS], 0i64);
    let mut grads = vec![null_mut(); x.len()];
    with_function(f, |fun, user, drop| {
        // SAFETY: the lengths match the lists, and the handles are live.
        unsafe {
            call(|c| {
                sys::tt_vjp(
                    c,
                    fun,
                    user,
                    drop,
                    x.as_ptr() as Inputs,
                    x.len() as i64,
                    v.as_ptr() as Inputs,
                    v.len() as i64,
                    outs.as_mut_ptr(),
                    MAX_RESULTS as i64,
                    &mut n,
                    grads.as_mut_ptr(),
                )
            })
        }
    })?;
    // SAFETY: C has returned these references to us.
    unsafe { Ok((taken(&outs, n).into_iter().flatten().collect(), taken(&grads, x.len() as i64))) }
}

/// Computes a Jacobian-vector product with one call of `f`. Returns the results and, for each, the
/// derivative in the direction of the input tangents; None for integers. A tangent of None is 0.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0]);
/// let v = tt::Tensor::from([1.0, -1.0]);
/// let (_, d) = tt::jvp(|x| Ok(vec![x[0].pow_scalar(3)?]), &[&x], &[Some(&v)])?;
/// assert_eq!(d[0].as_ref().unwrap().to_vec::<f64>()?, [3.0, -12.0]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn jvp(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
    tangents: &[Option<&Tensor>],
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    if tangents.len() != inputs.len() {
        return Err(Error::new(
            Status::InvalidArg,
            format!("{} tangents for {} inputs", tangents.len(), inputs.len()),
        ));
    }
    let (x, v) = (raw_list(inputs), opt_list(tangents));
    let (mut outs, mut n) = (vec![null_mut(); MAX_RESULTS], 0i64);
    let mut products = vec![null_mut(); MAX_RESULTS];
    with_function(f, |fun, user, drop| {
        // SAFETY: the lengths match the lists, and the handles are live.
        unsafe {
            call(|c| {
                sys::tt_jvp(
                    c,
                    fun,
                    user,
                    drop,
                    x.as_ptr() as Inputs,
                    v.as_ptr() as Inputs,
                    x.len() as i64,
                    outs.as_mut_ptr(),
                    products.as_mut_ptr(),
                    MAX_RESULTS as i64,
                    &mut n,
                )
            })
        }
    })?;
    // SAFETY: C has returned these references to us.
    unsafe { Ok((taken(&outs, n).into_iter().flatten().collect(), taken(&products, n))) }
}

/// Computes `f` and returns, beside its results, their derivative as a linear function of the
/// tangents of the inputs: Jacobian-vector products that do not call `f` again. Neither is recorded
/// for gradients; [`jvp`] is.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0]);
/// let (y, derivative) = tt::linearize(|x| Ok(vec![x[0].pow_scalar(3)?]), &[&x])?;
/// assert_eq!(y[0].to_vec::<f64>()?, [1.0, 8.0]);
/// for v in [[1.0, -1.0], [0.0, 1.0]] {
///     let product = derivative.call(&[tt::Tensor::from(v)])?.remove(0);
///     assert_eq!(product.to_vec::<f64>()?, [3.0 * v[0], 12.0 * v[1]]);
/// }
/// # Ok::<(), tt::Error>(())
/// ```
pub fn linearize(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
) -> Result<(Vec<Tensor>, Linearized)> {
    enable_grad(|| {
        let leaf = |x: &Tensor, learns| x.detach()?.requires_grad_(learns);
        let primals = inputs.iter().map(|x| leaf(x.borrow(), true)).collect::<Result<Vec<_>>>()?;
        let results = f(&primals)?;
        let weight = |y: &Tensor| leaf(&y.zeros_like()?, y.requires_grad());
        let weights = results.iter().map(weight).collect::<Result<Vec<_>>>()?;
        // Products with Jacobian matrices from the left are linear in the weights of the results:
        // their derivative in the direction of the tangents is the product from the right.
        let recorded: Vec<&Tensor> = results.iter().filter(|y| y.requires_grad()).collect();
        let given: Vec<Option<Tensor>> =
            weights.iter().filter(|w| w.requires_grad()).cloned().map(Some).collect();
        let opts = GradOpts::new().grad_outputs(&given).create_graph(true).allow_unused(true);
        let products = match recorded.is_empty() {
            true => vec![None; primals.len()],
            false => grad(&recorded, &primals, opts)?,
        };
        let results = results.iter().map(Tensor::detach).collect::<Result<_>>()?;
        Ok((results, Linearized { primals, weights, products }))
    })
}

/// The derivative of a function, which [`linearize`] has recorded. Threads may share it.
#[derive(Debug)]
pub struct Linearized {
    primals: Vec<Tensor>,
    weights: Vec<Tensor>,          // of the results
    products: Vec<Option<Tensor>>, // of each input, linear in the weights
}

impl Linearized {
    /// Returns the derivative of each result in the direction of the tangents, which have the
    /// shapes and dtypes of the inputs.
    pub fn call(&self, tangents: &[impl Borrow<Tensor>]) -> Result<Vec<Tensor>> {
        let n = self.primals.len();
        if tangents.len() != n {
            let why = format!("linearize: {} tangents for {} inputs", tangents.len(), n);
            return Err(Error::new(Status::InvalidArg, why));
        }
        for (i, (t, x)) in tangents.iter().zip(&self.primals).enumerate() {
            let t = t.borrow();
            if t.shape() != x.shape() || t.dtype() != x.dtype() {
                let why = format!("linearize: tangent {} is {:?}: must be as {:?}", i, t, x);
                return Err(Error::new(Status::Shape, why));
            }
        }
        let (mut from, mut directions) = (vec![], vec![]);
        for (product, t) in self.products.iter().zip(tangents) {
            if let Some(product) = product.as_ref().filter(|p| p.requires_grad()) {
                from.push(product);
                directions.push(Some(t.borrow().clone()));
            }
        }
        let to: Vec<&Tensor> = self.weights.iter().filter(|w| w.requires_grad()).collect();
        let opts = GradOpts::new().grad_outputs(&directions).retain_graph(true).allow_unused(true);
        let found = match from.is_empty() {
            true => vec![None; to.len()],
            false => grad(&from, &to, opts)?,
        };
        let mut found = found.into_iter();
        let of = |w: &Tensor| {
            let product = if w.requires_grad() { found.next().flatten() } else { None };
            product.map_or_else(|| w.zeros_like(), Ok)
        };
        self.weights.iter().map(of).collect()
    }
}

/// Runs a transform that returns matrices: one row per result or input, one matrix per input.
fn matrices(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
    transform: unsafe extern "C" fn(
        *mut sys::tt_ctx,
        sys::tt_fn,
        *mut c_void,
        DropFn,
        Inputs,
        i64,
        Outs,
        i64,
        *mut i64,
    ) -> sys::tt_status,
) -> Result<Vec<Vec<Tensor>>> {
    let x = raw_list(inputs);
    let room = MAX_RESULTS * x.len().max(1);
    let (mut outs, mut n) = (vec![null_mut(); room], 0i64);
    let (list, size, cap) = (x.as_ptr() as Inputs, x.len() as i64, room as i64);
    with_function(f, |fun, user, drop| {
        // SAFETY: the lengths match the lists, and the handles are live.
        unsafe {
            call(|c| transform(c, fun, user, drop, list, size, outs.as_mut_ptr(), cap, &mut n))
        }
    })?;
    // SAFETY: C has returned these references to us.
    let flat: Vec<Tensor> = unsafe { taken(&outs, n) }.into_iter().flatten().collect();
    Ok(flat.chunks(x.len().max(1)).map(<[Tensor]>::to_vec).collect())
}

/// Returns the Jacobians of `f`: for each result, one per input. The shape of each is that of the
/// result followed by that of the input.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0]);
/// let j = tt::jacobian(|x| Ok(vec![x[0].pow_scalar(3)?]), &[&x])?;
/// assert_eq!(j[0][0].to_vec::<f64>()?, [3.0, 0.0, 0.0, 12.0]);
/// # Ok::<(), tt::Error>(())
/// ```
#[doc(alias = "jacrev")]
#[doc(alias = "jacfwd")]
pub fn jacobian(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
) -> Result<Vec<Vec<Tensor>>> {
    matrices(f, inputs, sys::tt_jacobian)
}

/// Returns the Hessians of `f`: for each input, one per input. The first result of `f` must have
/// one element.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0]);
/// let h = tt::hessian(|x| Ok(vec![x[0].pow_scalar(3)?.sum()?]), &[&x])?;
/// assert_eq!(h[0][0].to_vec::<f64>()?, [6.0, 0.0, 0.0, 12.0]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn hessian(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
) -> Result<Vec<Vec<Tensor>>> {
    matrices(f, inputs, sys::tt_hessian)
}

/// Returns the first result of `f`, which must have one element, and the products of its Hessian
/// matrix and the tangents `v`, one for each input; a tangent of None is 0.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0]);
/// let v = tt::Tensor::from([1.0, -1.0]);
/// let (y, h) = tt::hvp(|x| Ok(vec![x[0].pow_scalar(3)?.sum()?]), &[&x], &[Some(&v)])?;
/// assert_eq!((y.item::<f64>()?, h[0].to_vec::<f64>()?), (9.0, vec![6.0, -12.0]));
/// # Ok::<(), tt::Error>(())
/// ```
#[doc(alias = "vhp")]
pub fn hvp(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
    v: &[Option<&Tensor>],
) -> Result<(Tensor, Vec<Tensor>)> {
    let gradient = |x: &[Tensor]| {
        let (mut results, grads) = vjp(&f, x, &[])?;
        results.truncate(1);
        for (grad, x) in grads.into_iter().zip(x) {
            results.push(grad.map_or_else(|| x.zeros_like(), Ok)?);
        }
        Ok(results)
    };
    let (values, products) = jvp(gradient, inputs, v)?;
    let products = products.into_iter().zip(&values).skip(1);
    let products = products.map(|(product, grad)| product.map_or_else(|| grad.zeros_like(), Ok));
    Ok((values[0].clone(), products.collect::<Result<_>>()?))
}

/// Vectorizes `f`, a function of one sample, and calls it once for all samples. `in_dims` has the
/// batch dimension of each input; None passes the whole input to each sample. The batch dimension
/// of results is the first.
///
/// ```
/// let x = tt::Tensor::from([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2])?;
/// let g = tt::vmap(
///     |x| {
///         let (_, g) = tt::vjp(|x| Ok(vec![x[0].pow_scalar(3)?.sum()?]), x, &[])?;
///         Ok(g.into_iter().flatten().collect())
///     },
///     &[&x],
///     &[Some(0)],
/// )?;
/// assert_eq!(g[0].to_vec::<f64>()?, [3.0, 12.0, 27.0, 48.0]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn vmap(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
    in_dims: &[Option<i64>],
) -> Result<Vec<Tensor>> {
    let x = raw_list(inputs);
    let dims: Vec<i64> = in_dims.iter().map(|d| d.unwrap_or(i64::MIN)).collect();
    let opts = sys::tt_vmap_opts {
        set: sys::TT_VMAP_IN_DIMS,
        in_dims: dims.as_ptr(),
        n_in_dims: dims.len() as i64,
        ..Default::default()
    };
    results(f, |fun, user, drop, outs, cap, n| {
        // SAFETY: the lengths match the lists, and the handles are live.
        unsafe {
            call(|c| {
                sys::tt_vmap(
                    c,
                    fun,
                    user,
                    drop,
                    x.as_ptr() as Inputs,
                    x.len() as i64,
                    &opts,
                    outs,
                    cap,
                    n,
                )
            })
        }
    })
}

/// # Functional calls
impl Module {
    /// Calls the module with other tensors in place of the parameters and buffers of the same
    /// names.
    pub fn functional_call(
        &self,
        with: &StateDict,
        inputs: &[impl Borrow<Tensor>],
    ) -> Result<Vec<Tensor>> {
        let x = raw_list(inputs);
        let (mut outs, mut n) = (vec![null_mut(); MAX_RESULTS], 0i64);
        // SAFETY: the lengths match the lists, and the handles are live.
        unsafe {
            call(|c| {
                sys::tt_functional_call(
                    c,
                    self.raw(),
                    with.raw(),
                    x.as_ptr() as Inputs,
                    x.len() as i64,
                    outs.as_mut_ptr(),
                    MAX_RESULTS as i64,
                    &mut n,
                )
            })?;
            Ok(taken(&outs, n).into_iter().flatten().collect())
        }
    }
}

/// Returns the parameters and the buffers of models of one class, stacked by name along a new first
/// dimension: for [`vmap`] over [`Module::functional_call`], which computes all models at once. The
/// parameters are leaves, and require gradients where those of the first model do.
///
/// ```
/// use tt::{nn, Layer, StateDict};
/// let models = [nn::linear(3, 2)?, nn::linear(3, 2)?, nn::linear(3, 2)?];
/// let (params, _) = tt::stack_module_state(&models)?;
/// let x = tt::randn(&[5, 3])?;
/// let (names, tensors): (Vec<_>, Vec<_>) = params.iter().unzip();
/// let of_one = |tensors: &[tt::Tensor]| {
///     let params: StateDict = names.iter().zip(tensors).collect();
///     models[0].functional_call(&params, &[&x])
/// };
/// let y = tt::vmap(of_one, &tensors, &[Some(0), Some(0)])?.remove(0);
/// assert_eq!(y.shape(), [3, 5, 2]);
/// assert!(y.select(0, 1)?.allclose(&models[1].forward(&x)?, 1e-5, 1e-6, false)?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn stack_module_state(models: &[impl Layer]) -> Result<(StateDict, StateDict)> {
    let refused =
        |why: &str| Error::new(Status::InvalidArg, format!("stack_module_state: {}", why));
    let models = models.iter().map(Layer::module).collect::<Result<Vec<_>>>()?;
    let first = models.first().ok_or_else(|| refused("there are no models"))?;
    if models.iter().any(|m| m.class() != first.class()) {
        return Err(refused("all models must be of the same class"));
    }
    if models.iter().any(|m| m.training() != first.training()) {
        return Err(refused("all models must be in the same training mode"));
    }
    let stacked = |tensors_of: fn(&Module) -> Result<StateDict>| -> Result<StateDict> {
        let all = models.iter().map(tensors_of).collect::<Result<Vec<_>>>()?;
        if all.iter().any(|state| state.names() != all[0].names()) {
            return Err(refused("all models must have tensors of the same names"));
        }
        let mut made = StateDict::new()?;
        for (name, t) in &all[0] {
            let parts = all.iter().map(|state| state.tensor(&name)?.detach());
            let stack = crate::stack(&parts.collect::<Result<Vec<_>>>()?)?;
            made.insert(&name, &stack.requires_grad_(t.requires_grad())?)?;
        }
        Ok(made)
    };
    Ok((stacked(Module::named_parameters)?, stacked(Module::named_buffers)?))
}

/// Calls `f` under autocast for tensors on devices of a kind: matrix products and convolutions
/// compute in `dtype`, losses in float32. Casts of parameters are cached during the call. Call
/// backward after it.
///
/// ```
/// use tt::{DType, DeviceType};
/// let x = tt::Tensor::from([1.0f32, 2.0]).reshape(&[1, 2])?;
/// let y = tt::autocast(DeviceType::Cpu, DType::BF16, || x.matmul(&x.t()?))?;
/// assert_eq!(y.dtype(), DType::BF16);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn autocast<R>(kind: DeviceType, dtype: DType, f: impl FnOnce() -> Result<R>) -> Result<R> {
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            // SAFETY: the matching push has succeeded. A failure cannot be reported here.
            let _ = unsafe { call(|c| sys::tt_autocast_pop(c)) };
        }
    }
    // SAFETY: plain numbers.
    unsafe { call(|c| sys::tt_autocast_push(c, kind as _, 1, dtype as _, 1))? };
    let _pop = Pop;
    f()
}

/// Calls `f` with a level of dual tensors, whose results have tangents. Levels do not nest.
///
/// ```
/// let (x, t) = (tt::Tensor::from([1.0, 2.0]), tt::Tensor::from([1.0, 0.5]));
/// let tangent = tt::dual_level(|| {
///     let y = tt::make_dual(&x, &t)?.pow_scalar(3)?;
///     Ok(tt::unpack_dual(&y)?.1.unwrap())
/// })?;
/// assert_eq!(tangent.to_vec::<f64>()?, [3.0, 6.0]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn dual_level<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            // SAFETY: the matching push has succeeded. A failure cannot be reported here.
            let _ = unsafe { call(|c| sys::tt_dual_level_pop(c)) };
        }
    }
    // SAFETY: there are no arguments.
    unsafe { call(|c| sys::tt_dual_level_push(c))? };
    let _pop = Pop;
    f()
}

/// Returns a dual tensor of the open level: a view of `primal` with a tangent.
pub fn make_dual(primal: &Tensor, tangent: &Tensor) -> Result<Tensor> {
    // SAFETY: the handles are live.
    unsafe { call1(|c, out| sys::tt_make_dual(c, primal.raw(), tangent.raw(), out)) }
}

/// Returns a tensor without its tangent at the open level, and the tangent, if there is one.
pub fn unpack_dual(t: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
    let mut tangent = null_mut();
    // SAFETY: the handle is live; C gives new references, or null for an absent tangent.
    unsafe {
        let primal = call1(|c, out| sys::tt_unpack_dual(c, t.raw(), out, &mut tangent))?;
        Ok((primal, owned(tangent)))
    }
}

impl GradScaler {
    /// Takes the optimizer's step unless a gradient has inf or nan. Returns whether it was taken.
    /// Replays of a compiled function decide anew.
    ///
    /// ```
    /// let w = tt::Tensor::from([1.0f32]).requires_grad_(true)?;
    /// let opt = tt::optim::sgd([&w])?;
    /// opt.set_lr(0.5)?;
    /// let scaler = tt::GradScaler::new()?;
    /// scaler.scale(&w.mul(&w)?.sum()?)?.backward()?;
    /// assert!(scaler.step(&opt)?);
    /// scaler.update(None)?;
    /// assert_eq!((w.item::<f32>()?, scaler.get_scale()), (0.0, 65536.0));
    ///
    /// let (p, s) = (w.clone(), scaler.clone());
    /// let train = tt::compile(
    ///     move |x| {
    ///         opt.zero_grad(true)?;
    ///         s.scale(&p.mul(&x[0])?.sum()?)?.backward()?;
    ///         s.step(&opt)?;
    ///         s.update(None)?;
    ///         Ok(vec![])
    ///     },
    ///     8,
    /// )?;
    /// for x in [1.0, 1.0, f32::INFINITY, 1.0] {
    ///     train.call(&[&tt::Tensor::from([x])])?;
    /// }
    /// assert_eq!((w.item::<f32>()?, scaler.get_scale()), (-1.5, 32768.0));
    /// assert_eq!(train.info()?.replays, 3);
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn step(&self, opt: &Optimizer) -> Result<bool> {
        // SAFETY: the handles are live.
        Ok(unsafe { call_value(|c, out| sys::tt_grad_scaler_step(c, self.raw(), opt.raw(), out))? }
            != 0)
    }
    /// Ends an iteration: lowers the scale if a gradient had inf or nan, and raises it after
    /// growth_interval iterations in a row without one. A new scale takes the place of this rule.
    pub fn update(&self, new_scale: impl Into<Option<f64>>) -> Result<()> {
        let scale = new_scale.into().unwrap_or(0.0);
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_grad_scaler_update(c, self.raw(), scale)) }
    }
    /// Sets what [`GradScaler::state`] returned.
    pub fn set_state(&self, state: &[f64; 5]) -> Result<()> {
        // SAFETY: the handle is live, and the state has five numbers.
        unsafe { call(|c| sys::tt_grad_scaler_set_state(c, self.raw(), state.as_ptr())) }
    }
}

/// Multiplies the gradients of the parameters by `factor`. Returns whether any element was inf or
/// nan; training with a scaled loss then skips the step.
pub fn unscale_grads(params: &[impl Borrow<Tensor>], factor: f64) -> Result<bool> {
    let list = raw_list::<Tensor>(params);
    let mut found_inf = 0;
    // SAFETY: the length matches the list, and the handles are live.
    unsafe {
        call(|c| {
            sys::tt_unscale_grads_(c, list.as_ptr(), list.len() as i64, factor, &mut found_inf)
        })?
    };
    Ok(found_inf != 0)
}

/// A function that is recorded once per kind of inputs and replayed without dispatch; see
/// [`compile`]. It stays on its thread, like the models that the function changes.
#[derive(Debug)]
pub struct Compiled(std::ptr::NonNull<sys::tt_compiled>);

/// The statistics of a [`Compiled`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledInfo {
    /// Records that can be replayed.
    pub records: i64,
    /// Calls that replayed a record.
    pub replays: i64,
    /// Calls that ran the function.
    pub runs: i64,
    /// Why the last such call was not recorded.
    pub reason: Option<String>,
}

/// Compiles `f`, ideally a whole training step: forward, backward and optimizer step. Inputs with
/// other shapes, strides or dtypes add a record, up to `limit`; beyond it, or if recording is
/// impossible, `f` itself runs. Replays do not repeat what `f` does besides computing with tensors.
///
/// ```
/// let double = tt::compile(|x| Ok(vec![x[0].mul_scalar(2)?]), 8)?;
/// for k in 0..3 {
///     let x = tt::Tensor::from([k as f32]);
///     assert_eq!(double.call(&[&x])?[0].item::<f32>()?, 2.0 * k as f32);
/// }
/// assert_eq!(double.info()?.replays, 2);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn compile(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'static,
    limit: i64,
) -> Result<Compiled> {
    compile_with(f, limit, false)
}

/// As [`compile`], but once three records differ only in the size of one dimension, such as the
/// batch, or five in two, and follow from each other, records for further sizes are made without
/// calling `f`, which must not decide by the size. `f` may be a whole training step.
///
/// ```
/// let mean = tt::compile_dynamic(|x| Ok(vec![x[0].sum()?.mul_scalar(0.5)?]), 8)?;
/// for n in 2..9 {
///     mean.call(&[&tt::Tensor::from(vec![1f32; n])])?;
/// }
/// assert_eq!(mean.info()?.runs, 3);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn compile_dynamic(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'static,
    limit: i64,
) -> Result<Compiled> {
    compile_with(f, limit, true)
}

fn compile_with(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'static,
    limit: i64,
    dynamic: bool,
) -> Result<Compiled> {
    let set = sys::TT_COMPILE_LIMIT | sys::TT_COMPILE_DYNAMIC;
    let opts = sys::tt_compile_opts { set, limit, dynamic: dynamic.into(), pad: 0 };
    let mut out = null_mut();
    let recorded = move |x: &[Tensor]| {
        let _recording = crate::graph::Recording::begin();
        f(x)
    };
    // SAFETY: the options are valid during the call, which takes ownership of the function.
    with_function(recorded, |fun, user, drop| unsafe {
        call(|c| sys::tt_compile(c, fun, user, drop, &opts, &mut out))
    })?;
    Ok(Compiled(std::ptr::NonNull::new(out).expect("tt_compile has succeeded")))
}

impl Compiled {
    /// Calls the function or replays its record. The caller owns the results.
    pub fn call(&self, inputs: &[impl Borrow<Tensor>]) -> Result<Vec<Tensor>> {
        let x = raw_list(inputs);
        let (mut outs, mut n) = (vec![null_mut(); MAX_RESULTS], 0i64);
        // SAFETY: the lengths match the lists, and the handles are live.
        unsafe {
            call(|c| {
                sys::tt_compiled_call(
                    c,
                    self.0.as_ptr(),
                    x.as_ptr() as Inputs,
                    x.len() as i64,
                    outs.as_mut_ptr(),
                    MAX_RESULTS as i64,
                    &mut n,
                )
            })?;
            Ok(taken(&outs, n).into_iter().flatten().collect())
        }
    }

    /// Returns the statistics.
    pub fn info(&self) -> Result<CompiledInfo> {
        let mut info = sys::tt_compiled_info::default();
        // SAFETY: the handle is live; the reason is valid until the next call of the function.
        unsafe {
            call(|c| sys::tt_compiled_get_info(c, self.0.as_ptr(), &mut info))?;
            Ok(CompiledInfo {
                records: info.n_records,
                replays: info.n_replays,
                runs: info.n_runs,
                reason: opt_text(info.reason),
            })
        }
    }

    /// Drops the records; later calls make new ones.
    pub fn reset(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_compiled_reset(c, self.0.as_ptr())) }
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: we own the reference.
        unsafe { sys::tt_compiled_release(self.0.as_ptr()) }
    }
}
