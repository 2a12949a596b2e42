//! Modules of the host, and the forms of forward beyond one tensor in, one out.
use crate::callback::user;
use crate::error::{Error, Result};
use crate::gen::callbacks;
use crate::handle::*;
use crate::opts::MultiheadAttentionForwardOpts;
use crate::{DType, Device, Module, Status, Tensor};
use std::ptr::null_mut;
use std::sync::Arc;
use tt_sys as sys;

/// A `Sequential` of these.
///
/// ```
/// use tt::nn;
/// let net = tt::sequential([nn::linear(4, 8)?, nn::relu()?, nn::linear(8, 2)?])?;
/// assert_eq!(net.call(&tt::zeros(&[3, 4])?)?.shape(), [3, 2]);
/// println!("{}", net);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn sequential(children: impl IntoIterator<Item = Module>) -> Result<Module> {
    let all = crate::nn::sequential()?;
    children.into_iter().try_for_each(|child| all.append(&child))?;
    Ok(all)
}

type Forward = dyn Fn(&Module, &[Option<Tensor>]) -> Result<Vec<Tensor>> + Send;
#[derive(Clone)]
struct Closure(Arc<Box<Forward>>);
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

impl Module {
    /// A module of the host, which may stand in tt's containers and have parameters and children of its own. forward gets the module, and by
    /// it its children ([`get_submodule`](Module::get_submodule)): it cannot keep handles of modules. Copies share the closure.
    ///
    /// ```
    /// let double = tt::Module::custom("Double", |m, x| Ok(vec![x[0].as_ref().unwrap() * m.get_tensor("scale")?.unwrap()]))?;
    /// double.register_parameter("scale", Some(&tt::full(&[1], 2.0)?))?;
    /// let net = tt::sequential([double])?;
    /// assert_eq!(net.call(&tt::ones(&[1])?)?.item::<f32>()?, 2.0);
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn custom<F>(name: &str, forward: F) -> Result<Module>
    where
        F: Fn(&Module, &[Option<Tensor>]) -> Result<Vec<Tensor>> + Send + 'static,
    {
        let name = c_string(name)?;
        let def = callbacks::tt_module_def::table::<Closure>(
            name.as_ptr(),
            user(Closure(Arc::new(Box::new(forward)))),
        );
        unsafe { call1(|c, out| sys::tt_module_new_custom(c, &def, out)) }
    }
    /// A module that is a function of one tensor.
    pub fn from_fn(
        name: &str,
        f: impl Fn(&Tensor) -> Result<Tensor> + Send + 'static,
    ) -> Result<Module> {
        Module::custom(name, move |_, inputs| match inputs {
            [Some(x)] => Ok(vec![f(x)?]),
            _ => Err(Error::new(Status::InvalidArg, format!("{} inputs: takes one", inputs.len()))),
        })
    }
    /// A [copy](Module::copy) on another device, or with another dtype of floating and complex tensors; None keeps.
    pub fn copy_to(&self, device: Option<Device>, dtype: Option<DType>) -> Result<Module> {
        let copy = self.copy()?;
        unsafe { copy.to(device, dtype)? }; // nobody else has its tensors
        Ok(copy)
    }
    /// Forward where inputs may be absent.
    pub fn forward_opt(&self, inputs: &[Option<&Tensor>]) -> Result<Vec<Tensor>> {
        let list = opt_list(inputs);
        unsafe {
            call_list(|c, outs, cap, n| {
                sys::tt_module_forward(
                    c,
                    self.raw(),
                    list.as_ptr() as *const *const _,
                    list.len() as i64,
                    outs,
                    cap,
                    n,
                )
            })
        }
    }
    /// The forward of a MultiheadAttention with options: result and weights. It does not run the module's hooks.
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        opts: MultiheadAttentionForwardOpts,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let (q, k, v, mut weights) = (query.raw(), key.raw(), value.raw(), null_mut());
        let out = unsafe {
            call1(|c, out| {
                sys::tt_nn_multihead_attention_forward(
                    c,
                    self.raw(),
                    q,
                    k,
                    v,
                    &opts.0,
                    out,
                    &mut weights,
                )
            })?
        };
        Ok((out, unsafe { owned(weights) }))
    }
}

impl std::fmt::Display for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.print().map_err(|_| std::fmt::Error)?)
    }
}
