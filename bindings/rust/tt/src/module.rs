//! Custom modules, calls with several inputs and outputs, and sharing between threads. The other
//! methods are generated from tt.h.
use crate::callback::user;
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::generated::callbacks;
use crate::handle::*;
use crate::opts::MultiheadAttentionForwardOpts;
use crate::{DType, Device, Layer, Module, StateDict, Status, Tensor};
use std::borrow::Borrow;
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;
use tt_sys as sys;

type Forward = dyn Fn(&Module, &[Option<Tensor>]) -> Result<Vec<Tensor>> + Send + Sync;

/// The forward of a custom module. Copies of the module share the closure.
#[derive(Clone)]
struct Closure(Arc<Forward>);

pub(crate) trait CustomModule: Sized {
    fn forward(&self, m: &Module, inputs: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;
    fn copy(&self) -> Result<Self>;
}
impl CustomModule for Closure {
    fn forward(&self, m: &Module, inputs: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Ok(self.0(m, inputs)?.into_iter().map(Some).collect())
    }
    fn copy(&self) -> Result<Closure> {
        Ok(self.clone())
    }
}

/// # Custom modules, several inputs, threads
impl Module {
    /// Makes a module whose forward is a closure. Register parameters and children with the module,
    /// which is passed to the closure: the closure cannot capture module handles, which are not
    /// `Send`. Copies share the closure. [`module!`](crate::module!) declares such modules as
    /// structs.
    ///
    /// ```
    /// let double = tt::Module::custom("Double", |m, x| {
    ///     Ok(vec![x[0].as_ref().unwrap() * m.get_tensor("scale")?.unwrap()])
    /// })?;
    /// double.register_parameter("scale", Some(&tt::full(&[1], 2.0)?))?;
    /// let net = tt::sequential([double])?;
    /// assert_eq!(net.forward(&tt::ones(&[1])?)?.item::<f32>()?, 2.0);
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn custom<F>(name: &str, forward: F) -> Result<Module>
    where
        F: Fn(&Module, &[Option<Tensor>]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    {
        let name = c_string(name)?;
        let closure = user(Closure(Arc::new(forward)));
        let def = callbacks::tt_module_def::table::<Closure>(name.as_ptr(), closure);
        // SAFETY: the table belongs to `closure`, which the module takes ownership of.
        unsafe { call1(|c, out| sys::tt_module_new_custom(c, &def, out)) }
    }
    /// Makes a module without parameters from a function of one tensor.
    pub fn from_fn(
        name: &str,
        f: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Result<Module> {
        Module::custom(name, move |_, inputs| match inputs {
            [Some(x)] => Ok(vec![f(x)?]),
            _ => Err(Error::new(Status::InvalidArg, format!("{} inputs: takes one", inputs.len()))),
        })
    }
    /// Runs a module with one input and one output; the same as [`forward`](Module::forward).
    #[inline]
    pub fn call(&self, input: &Tensor) -> Result<Tensor> {
        self.forward(input)
    }
    /// Runs a module with any number of inputs and outputs. A wrong number of inputs fails with
    /// `Status::InvalidArg`; the message has the right number.
    pub fn forward_list(&self, inputs: &[impl Borrow<Tensor>]) -> Result<Vec<Tensor>> {
        self.forward_raw(&raw_list(inputs))
    }
    /// Runs a module with optional inputs.
    pub fn forward_opt(&self, inputs: &[Option<&Tensor>]) -> Result<Vec<Tensor>> {
        self.forward_raw(&opt_list(inputs))
    }
    fn forward_raw(&self, inputs: &[*mut sys::tt_tensor]) -> Result<Vec<Tensor>> {
        let (list, n) = (inputs.as_ptr() as *const *const _, inputs.len() as i64);
        // SAFETY: the inputs are null or handles of the callers' arguments.
        unsafe {
            call_list(|c, outs, cap, n_outs| {
                sys::tt_module_forward(c, self.raw(), list, n, outs, cap, n_outs)
            })
        }
    }
    /// Runs a MultiheadAttention with options; returns the result and, if requested, the weights.
    /// Hooks of the module do not run.
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        opts: MultiheadAttentionForwardOpts,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let (q, k, v, mut weights) = (query.raw(), key.raw(), value.raw(), null_mut());
        // SAFETY: the handles are live; a successful call returns one reference per result.
        unsafe {
            let out = call1(|c, out| {
                let (opts, weights) = (&opts.0, &mut weights);
                sys::tt_nn_multihead_attention_forward(c, self.raw(), q, k, v, opts, out, weights)
            })?;
            Ok((out, owned(weights)))
        }
    }
    /// [Copies](Module::copy) the module to a device, or to a dtype for its floating-point and
    /// complex tensors; None keeps the present one.
    pub fn copy_to(&self, device: Option<Device>, dtype: Option<DType>) -> Result<Module> {
        let copy = self.copy()?;
        // SAFETY: the copy's tensors are not shared.
        unsafe { copy.to(device, dtype)? };
        Ok(copy)
    }
    /// Makes the module and all modules below it immutable, so that threads can share it. Sets
    /// evaluation mode; from then on, calls that would change the module fail, through any handle.
    /// A module with hooks cannot be frozen. Nothing is copied; a [`copy`](Module::copy) is not
    /// frozen.
    ///
    /// ```
    /// let net = tt::sequential![tt::nn::linear(4, 2)?, tt::nn::dropout()?]?;
    /// let shared = net.freeze()?;
    /// std::thread::scope(|s| {
    ///     for i in 0..4 {
    ///         let shared = &shared;
    ///         s.spawn(move || shared.forward(&tt::full(&[1, 4], i)?));
    ///     }
    /// });
    /// assert!(net.train(true).is_err());
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn freeze(&self) -> Result<SharedModule> {
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_module_freeze(c, self.raw()))? };
        Ok(SharedModule(self.clone()))
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print().map_err(|_| fmt::Error)?)
    }
}
/// Prints the module tree, as [`Display`](fmt::Display) does.
impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An immutable module, created by [`Module::freeze`]. Any number of threads can call it at the
/// same time. Clones share it.
///
/// Forward records no gradients. The module's tensors are not frozen: a call during an optimizer
/// step may see a mix of old and new values.
#[derive(Clone)]
pub struct SharedModule(Module);

// SAFETY: a frozen module cannot be changed through any handle, so threads may use it at the same
// time (tt.h, Threads). It has no hooks, and its closures are Send and Sync (`Module::custom`); a
// module created in C must allow calls from any thread, as `tt_module_freeze` requires. Tensors may
// be shared in any case.
unsafe impl Send for SharedModule {}
// SAFETY: as above.
unsafe impl Sync for SharedModule {}

impl SharedModule {
    /// Runs the module without recording gradients.
    pub fn forward(&self, input: &Tensor) -> Result<Tensor> {
        no_grad(|| self.0.forward(input))
    }
    /// Runs a module with any number of inputs and outputs, without recording gradients.
    pub fn forward_list(&self, inputs: &[impl Borrow<Tensor>]) -> Result<Vec<Tensor>> {
        no_grad(|| self.0.forward_list(inputs))
    }
    /// Returns a handle of the module for this thread.
    pub fn module(&self) -> Module {
        self.0.clone()
    }
    /// Returns the parameters, each once.
    pub fn parameters(&self) -> Result<Vec<Tensor>> {
        self.0.parameters()
    }
    /// Returns the parameters and persistent buffers under all their names. They share memory with
    /// the module.
    pub fn state_dict(&self) -> Result<StateDict> {
        self.0.state_dict()
    }
}
impl Layer for SharedModule {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        SharedModule::forward(self, input)
    }
    fn module(&self) -> Result<Module> {
        Ok(self.0.clone())
    }
}
impl fmt::Display for SharedModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
impl fmt::Debug for SharedModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedModule").field(&self.0).finish()
    }
}
