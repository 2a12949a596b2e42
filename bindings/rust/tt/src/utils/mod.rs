//! Gradient norms, vectors of parameters, parametrizations and pruning, as torch.nn.utils has them.
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::{Module, Scalar, Status, Tensor};
use std::borrow::Borrow;

mod fusion;
mod gradcheck;
pub(crate) mod hooked;
mod lowrank;
pub mod parametrize;
pub mod prune;
pub mod special;

pub use fusion::*;
pub use gradcheck::*;
pub use lowrank::*;

/// Returns the norm of order `norm_type` of all tensors as one vector, of shape (). Without tensors
/// it is 0. With `error_if_nonfinite`, a norm that is nan or infinite fails.
pub fn get_total_norm(
    tensors: &[impl Borrow<Tensor>],
    norm_type: f64,
    error_if_nonfinite: bool,
) -> Result<Tensor> {
    if tensors.is_empty() {
        return crate::zeros(&[]);
    }
    let total = no_grad(|| {
        let norms = tensors.iter().map(|t| t.borrow().norm(norm_type, &[]));
        crate::stack(&norms.collect::<Result<Vec<_>>>()?)?.norm(norm_type, &[])
    })?;
    if error_if_nonfinite && !total.item::<f64>()?.is_finite() {
        let why = format!("get_total_norm: the norm of order {} is {}", norm_type, total);
        return Err(Error::new(Status::InvalidArg, why));
    }
    Ok(total)
}

/// Multiplies the gradients of parameters by min(1, max_norm / (total_norm + 1e-6)). Parameters
/// without a gradient are skipped.
///
/// ```
/// use tt::utils::{clip_grads_with_norm_, get_total_norm};
/// let w = tt::Tensor::from([3.0f32, 4.0]).requires_grad_(true)?;
/// w.mul(&w)?.sum()?.backward()?;
/// let total = get_total_norm(&[w.grad()?.unwrap()], 2.0, false)?;
/// clip_grads_with_norm_([&w], 1.0, &total)?;
/// assert_eq!(total.item::<f32>()?, 10.0);
/// assert!((w.grad()?.unwrap().norm(2.0, &[])?.item::<f32>()? - 1.0).abs() < 1e-5);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn clip_grads_with_norm_(
    params: impl IntoIterator<Item = impl AsRef<Tensor>>,
    max_norm: f64,
    total_norm: &Tensor,
) -> Result<()> {
    no_grad(|| {
        let ratio = total_norm.add_scalar(1e-6)?.reciprocal()?.mul_scalar(max_norm)?;
        let factor = ratio.clamp(None, Some(Scalar::from(1.0)))?;
        for p in params {
            if let Some(grad) = p.as_ref().grad()? {
                // SAFETY: writes numbers alone, as an optimizer's step does.
                unsafe { grad.mul_(&factor)? };
            }
        }
        Ok(())
    })
}

/// Makes a module the activation of the Transformer layers in `module`: each gets a copy, as its
/// child `activation`.
///
/// ```
/// let layer = tt::nn::transformer_encoder_layer(8, 2)?;
/// let squared = tt::Module::from_fn("SquaredRelu", |x| x.relu()?.square())?;
/// tt::utils::set_activation(&layer, &squared)?;
/// assert_eq!(layer.forward(&tt::ones(&[3, 1, 8])?)?.shape(), [3, 1, 8]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn set_activation(module: &Module, activation: &Module) -> Result<()> {
    let (mut found, mut todo) = (false, vec![module.clone()]);
    while let Some(m) = todo.pop() {
        if matches!(m.class().as_str(), "TransformerEncoderLayer" | "TransformerDecoderLayer") {
            m.register_module("activation", &activation.copy()?)?;
            found = true;
        } else {
            todo.extend((0..m.num_children()).map(|i| m.child(i)).collect::<Result<Vec<_>>>()?);
        }
    }
    let why = format!("set_activation: {} has no Transformer layers", module.class());
    found.then(|| ()).ok_or_else(|| Error::new(Status::InvalidArg, why))
}

/// Returns the weight and bias of a convolution, or of a linear layer, that includes the batch
/// normalization behind it, in evaluation: of the running statistics `mean` and `var`, `eps`, and
/// the normalization's weight and bias. `transposed`: of a transposed convolution.
///
/// ```
/// let (conv, norm) = (tt::nn::conv2d(2, 3, &[1])?, tt::nn::batch_norm2d(3)?);
/// let of = |m: &tt::Module, name| Ok::<_, tt::Error>(m.get_tensor(name)?.unwrap());
/// let (mean, var) = (of(&norm, "running_mean")?, of(&norm, "running_var")?);
/// let w = of(&conv, "weight")?;
/// let fuse = tt::utils::fuse_conv_bn_weights;
/// let (w, b) = fuse(&w, None, &mean, &var, 1e-5, None, None, false)?;
/// assert_eq!((w.shape(), b.shape()), (&[3, 2, 1, 1][..], &[3][..]));
/// # Ok::<(), tt::Error>(())
/// ```
#[doc(alias = "fuse_linear_bn_weights")]
#[allow(clippy::too_many_arguments)]
pub fn fuse_conv_bn_weights(
    weight: &Tensor,
    bias: Option<&Tensor>,
    mean: &Tensor,
    var: &Tensor,
    eps: f64,
    bn_weight: Option<&Tensor>,
    bn_bias: Option<&Tensor>,
    transposed: bool,
) -> Result<(Tensor, Tensor)> {
    let fused: Result<(Tensor, Tensor)> = no_grad(|| {
        let mut factor = var.add_scalar(eps)?.rsqrt()?;
        if let Some(scale) = bn_weight {
            factor = factor.mul(scale)?;
        }
        let mut offset = bias.map_or_else(|| mean.neg(), |b| b.sub(mean))?.mul(&factor)?;
        if let Some(shift) = bn_bias {
            offset = offset.add(shift)?;
        }
        let mut shape = vec![1; weight.shape().len()];
        shape[transposed as usize] = -1;
        let dtype = weight.dtype();
        Ok((weight.mul(&factor.reshape(&shape)?)?.to_dtype(dtype)?, offset.to_dtype(dtype)?))
    });
    let (w, b) = fused?;
    let learnt = weight.requires_grad();
    Ok((w.requires_grad_(learnt)?, b.requires_grad_(bias.map_or(learnt, Tensor::requires_grad))?))
}

/// Draws from the Gumbel-softmax distribution (Jang et al. 2016) of logits along dim, with the
/// temperature `tau`. `hard`: the result is one-hot, with the gradient of the soft one.
///
/// ```
/// let logits = tt::zeros(&[5, 3])?.requires_grad_(true)?;
/// let y = tt::utils::gumbel_softmax(&logits, 0.5, true, -1)?;
/// assert_eq!(y.sum()?.item::<f32>()?, 5.0);
/// assert!(y.requires_grad());
/// # Ok::<(), tt::Error>(())
/// ```
pub fn gumbel_softmax(logits: &Tensor, tau: f64, hard: bool, dim: i64) -> Result<Tensor> {
    let drawn = logits.detach()?.zeros_like()?;
    // SAFETY: nobody else has the tensor.
    unsafe { drawn.exponential_(1.0)? };
    let soft = logits.sub(&drawn.log()?)?.div_scalar(tau)?.softmax(dim)?;
    if !hard {
        return Ok(soft);
    }
    let fixed = soft.detach()?;
    let largest = fixed.argmax_with(crate::opts::ArgmaxOpts::new().dim(dim).keepdim(true))?;
    fixed.zeros_like()?.scatter_value(dim, &largest, 1.0)?.sub(&fixed)?.add(&soft)
}

/// Returns all parameters, flattened in row-major order, as one tensor of one dimension.
///
/// ```
/// use tt::utils::{parameters_to_vector, vector_to_parameters};
/// let net = tt::nn::linear(3, 2)?;
/// let vector = parameters_to_vector(&net.parameters()?)?;
/// assert_eq!(vector.shape(), [8]);
/// vector_to_parameters(&vector.mul_scalar(2)?, &net.parameters()?)?;
/// assert!(parameters_to_vector(&net.parameters()?)?.equal(&vector.mul_scalar(2)?)?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn parameters_to_vector(params: &[impl Borrow<Tensor>]) -> Result<Tensor> {
    let flat = params.iter().map(|p| p.borrow().reshape(&[-1]));
    crate::cat(&flat.collect::<Result<Vec<_>>>()?)
}

/// Copies consecutive elements of a vector into parameters: into all, or into none if the vector
/// has fewer elements or more.
pub fn vector_to_parameters(vector: &Tensor, params: &[impl Borrow<Tensor>]) -> Result<()> {
    let sizes: Vec<i64> = params.iter().map(|p| p.borrow().numel()).collect();
    if vector.shape() != [sizes.iter().sum::<i64>()] {
        let rule = "its length must be the number of all elements of the parameters";
        let why = format!("vector_to_parameters: vector is {:?}: {}", vector.shape(), rule);
        return Err(Error::new(Status::Shape, why));
    }
    no_grad(|| {
        for (p, part) in params.iter().zip(vector.split_with_sizes(&sizes)?) {
            let p = p.borrow();
            // SAFETY: writes numbers alone, as loading a state does.
            unsafe { p.copy_(&part.reshape(p.shape())?)? };
        }
        Ok(())
    })
}
