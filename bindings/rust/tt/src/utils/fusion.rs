//! Batch normalizations fused into the layers before them, for evaluation.
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::{Module, StateDict, Status, Tensor};

/// Returns a copy of a convolution, transposed or not, that includes the batch normalization behind
/// it. Both must be in evaluation mode.
///
/// ```
/// use tt::nn;
/// let (conv, bn) = (nn::conv2d(2, 3, &[3])?, nn::batch_norm2d(3)?);
/// conv.train(false)?;
/// bn.train(false)?;
/// let fused = tt::utils::fuse_conv_bn_eval(&conv, &bn)?;
/// let x = tt::randn(&[1, 2, 5, 5])?;
/// let y = bn.forward(&conv.forward(&x)?)?;
/// assert!(fused.forward(&x)?.allclose(&y, 1e-4, 1e-5, false)?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn fuse_conv_bn_eval(conv: &Module, bn: &Module) -> Result<Module> {
    let class = conv.class();
    if !class.starts_with("Conv") {
        return Err(refused("fuse_conv_bn_eval", &class, "must be a convolution"));
    }
    let channels_dim = class.starts_with("ConvTranspose") as usize;
    fused("fuse_conv_bn_eval", conv, bn, channels_dim)
}

/// Returns a copy of a linear layer that includes the batch normalization behind it. Both must be
/// in evaluation mode. The normalization has as many channels as the layer has outputs, or one.
///
/// ```
/// let (linear, bn) = (tt::nn::linear(4, 3)?, tt::nn::batch_norm1d(3)?);
/// linear.train(false)?;
/// bn.train(false)?;
/// let fused = tt::utils::fuse_linear_bn_eval(&linear, &bn)?;
/// let x = tt::randn(&[2, 4])?;
/// let y = bn.forward(&linear.forward(&x)?)?;
/// assert!(fused.forward(&x)?.allclose(&y, 1e-4, 1e-5, false)?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn fuse_linear_bn_eval(linear: &Module, bn: &Module) -> Result<Module> {
    let class = linear.class();
    if class != "Linear" {
        return Err(refused("fuse_linear_bn_eval", &class, "must be a linear layer"));
    }
    fused("fuse_linear_bn_eval", linear, bn, 0)
}

fn refused(op: &str, what: &str, rule: &str) -> Error {
    Error::new(Status::InvalidArg, format!("{}: {}: {}", op, what, rule))
}

/// Fuses a layer whose weight has the output channels in a dimension with a normalization.
fn fused(op: &str, layer: &Module, bn: &Module, channels_dim: usize) -> Result<Module> {
    if !bn.class().contains("BatchNorm") {
        return Err(refused(op, &bn.class(), "must be a batch normalization"));
    }
    if let Some(m) = [layer, bn].iter().find(|m| m.training()) {
        return Err(refused(op, &m.class(), "must be in evaluation mode"));
    }
    let untracked = || refused(op, &bn.class(), "must have running statistics");
    let mean = bn.get_tensor("running_mean")?.ok_or_else(untracked)?;
    let weight = layer.get_tensor("weight")?.expect("each such layer has a weight");
    let bias = layer.get_tensor("bias")?;
    let (outputs, channels) = (weight.size(channels_dim as i64), mean.numel());
    if channels != outputs && (channels != 1 || layer.class() != "Linear") {
        let rule =
            format!("has {} channels, the layer {} outputs: must be equal", channels, outputs);
        return Err(refused(op, &bn.class(), &rule));
    }
    let parts: Result<(Tensor, Tensor)> = no_grad(|| {
        // The normalization of 1 without mean and shift is the factor of each channel, that of the
        // bias is the new bias.
        let mut scaling = StateDict::new()?;
        for name in ["running_mean", "bias"] {
            if let Some(t) = bn.get_tensor(name)? {
                scaling.insert(name, &t.zeros_like()?)?;
            }
        }
        let mut shape = vec![1; weight.ndim() as usize];
        shape[0] = -1;
        shape[1] = channels;
        let ones = mean.ones_like()?.reshape(&shape)?;
        let factor = bn.functional_call(&scaling, &[ones])?.remove(0);
        let start = match &bias {
            Some(b) => b.to_dtype(mean.dtype())?,
            None => mean.zeros_like()?.expand(&[outputs])?,
        };
        let offset = bn.forward(&start.reshape(&shape)?)?.reshape(&[-1])?;
        let mut shape = vec![1; weight.ndim() as usize];
        shape[channels_dim] = -1;
        let dtype = weight.dtype();
        Ok((weight.mul(&factor.reshape(&shape)?)?.to_dtype(dtype)?, offset.to_dtype(dtype)?))
    });
    let (w, b) = parts?;
    let learnt = weight.requires_grad();
    let made = layer.copy()?;
    made.register_parameter("weight", Some(&w.requires_grad_(learnt)?))?;
    let learnt = bias.map_or(learnt, |b| b.requires_grad());
    made.register_parameter("bias", Some(&b.requires_grad_(learnt)?))?;
    Ok(made)
}
