//! Initial values of weights, by the names of torch.nn.init without underscores: each returns a new
//! tensor. [`Module::register_parameter`](crate::Module::register_parameter) gives it to a layer.
//!
//! ```
//! use tt::init::{self, Fan, Nonlinearity};
//! let layer = tt::nn::linear(64, 32)?;
//! let weight = init::kaiming_normal(&[32, 64], Fan::Out, Nonlinearity::Relu)?;
//! layer.register_parameter("weight", Some(&weight.requires_grad_(true)?))?;
//! # Ok::<(), tt::Error>(())
//! ```
use crate::error::{Error, Result};
use crate::opts::QrOpts;
use crate::{DType, Scalar, Status, Tensor};

/// The function that follows a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nonlinearity {
    /// Nothing, or another layer.
    Linear,
    /// The sigmoid.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// ReLU.
    Relu,
    /// Leaky ReLU, with its slope for negative inputs.
    LeakyRelu(f64),
    /// SELU.
    Selu,
}

/// The number of connections whose variance is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// The inputs of an output: activations keep their variance.
    In,
    /// The outputs of an input: gradients keep their variance.
    Out,
}

/// Returns the recommended gain of weights before a nonlinearity.
pub fn calculate_gain(nonlinearity: Nonlinearity) -> f64 {
    match nonlinearity {
        Nonlinearity::Linear | Nonlinearity::Sigmoid => 1.0,
        Nonlinearity::Tanh => 5.0 / 3.0,
        Nonlinearity::Relu => 2f64.sqrt(),
        Nonlinearity::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
        Nonlinearity::Selu => 0.75,
    }
}

fn wrong_shape(shape: &[i64], rule: &str) -> Error {
    Error::new(Status::Shape, format!("init: shape is {:?}: {}", shape, rule))
}
/// The numbers of inputs and of outputs of a weight of shape (out, in, …).
fn fans(shape: &[i64]) -> Result<(f64, f64)> {
    match shape {
        [out, input, window @ ..] => {
            let window: f64 = window.iter().map(|n| *n as f64).product();
            Ok((*input as f64 * window, *out as f64 * window))
        }
        _ => Err(wrong_shape(shape, "must have at least 2 dimensions")),
    }
}

/// Returns values uniform in [a, b).
pub fn uniform(shape: &[i64], a: f64, b: f64) -> Result<Tensor> {
    let t = crate::empty(shape)?;
    // SAFETY: nothing else has the new tensor.
    unsafe { t.uniform_(a, b)? };
    Ok(t)
}
/// Returns normal values.
pub fn normal(shape: &[i64], mean: f64, std: f64) -> Result<Tensor> {
    let t = crate::empty(shape)?;
    // SAFETY: nothing else has the new tensor.
    unsafe { t.normal_(mean, std)? };
    Ok(t)
}
/// Returns normal values truncated to [a, b].
pub fn trunc_normal(shape: &[i64], mean: f64, std: f64, a: f64, b: f64) -> Result<Tensor> {
    let scale = std * 2f64.sqrt();
    let end = |x: f64| Tensor::from((x - mean) / scale).erf()?.item::<f64>();
    let t = uniform(shape, end(a)?, end(b)?)?.erfinv()?;
    let values = t.mul_scalar(scale)?.add_scalar(mean)?;
    values.clamp(Some(Scalar::from(a)), Some(Scalar::from(b)))
}
/// Returns values uniform within gain * sqrt(6 / (fan_in + fan_out)): Glorot and Bengio, 2010.
pub fn xavier_uniform(shape: &[i64], gain: f64) -> Result<Tensor> {
    let (input, output) = fans(shape)?;
    let bound = gain * (6.0 / (input + output)).sqrt();
    uniform(shape, -bound, bound)
}
/// Returns normal values of std gain * sqrt(2 / (fan_in + fan_out)): Glorot and Bengio, 2010.
pub fn xavier_normal(shape: &[i64], gain: f64) -> Result<Tensor> {
    let (input, output) = fans(shape)?;
    normal(shape, 0.0, gain * (2.0 / (input + output)).sqrt())
}
fn kaiming_std(shape: &[i64], mode: Fan, nonlinearity: Nonlinearity) -> Result<f64> {
    let (input, output) = fans(shape)?;
    let fan = if mode == Fan::In { input } else { output };
    Ok(calculate_gain(nonlinearity) / fan.sqrt())
}
/// Returns values uniform within gain * sqrt(3 / fan): He et al., 2015.
pub fn kaiming_uniform(shape: &[i64], mode: Fan, nonlinearity: Nonlinearity) -> Result<Tensor> {
    let bound = 3f64.sqrt() * kaiming_std(shape, mode, nonlinearity)?;
    uniform(shape, -bound, bound)
}
/// Returns normal values of std gain / sqrt(fan): He et al., 2015.
pub fn kaiming_normal(shape: &[i64], mode: Fan, nonlinearity: Nonlinearity) -> Result<Tensor> {
    normal(shape, 0.0, kaiming_std(shape, mode, nonlinearity)?)
}
/// Returns orthogonal rows, or columns if there are fewer, of norm gain: Saxe et al., 2013. All
/// dimensions but the first are flattened.
pub fn orthogonal(shape: &[i64], gain: f64) -> Result<Tensor> {
    let (rows, columns) = match shape {
        [rows, rest @ ..] if !rest.is_empty() => (*rows, rest.iter().product::<i64>()),
        _ => return Err(wrong_shape(shape, "must have at least 2 dimensions")),
    };
    if rows == 0 || columns == 0 {
        return crate::empty(shape);
    }
    let dtype = crate::default_dtype()?;
    let values = normal(&[rows.max(columns), rows.min(columns)], 0.0, 1.0)?;
    let (q, r) = values.to_dtype(DType::F64)?.qr_with(QrOpts::new().some(true))?;
    let q = q.mul(&r.diagonal()?.sign()?)?; // the factor of a positive diagonal is unique
    let q = if rows < columns { q.t()? } else { q };
    q.mul_scalar(gain)?.reshape(shape)?.to_dtype(dtype)
}
/// Returns normal values (out, in) of mean 0, of which the fraction `sparsity` of each column is 0,
/// rounded up: Martens, 2010.
pub fn sparse(shape: &[i64], sparsity: f64, std: f64) -> Result<Tensor> {
    let (rows, columns) = match shape {
        [rows, columns] => (*rows, *columns),
        _ => return Err(wrong_shape(shape, "must have 2 dimensions")),
    };
    if !(0.0..=1.0).contains(&sparsity) {
        let why = format!("init: sparsity is {}: must be in [0, 1]", sparsity);
        return Err(Error::new(Status::InvalidArg, why));
    }
    let zeros = (sparsity * rows as f64).ceil() as usize;
    let values = normal(shape, 0.0, std)?;
    let mut dropped = vec![false; (rows * columns) as usize];
    for column in 0..columns {
        for row in &crate::randperm(rows)?.to_vec::<i64>()?[..zeros] {
            dropped[(row * columns + column) as usize] = true;
        }
    }
    values.masked_fill(&Tensor::from_vec(dropped, shape)?, 0.0)
}
/// Returns a weight of a convolution, of 3 to 5 dimensions, that returns its input in each of the
/// groups.
pub fn dirac(shape: &[i64], groups: i64) -> Result<Tensor> {
    if !(3..=5).contains(&shape.len()) {
        return Err(wrong_shape(shape, "must have 3, 4 or 5 dimensions"));
    }
    if groups < 1 || shape[0] % groups != 0 {
        return Err(wrong_shape(shape, "dimension 0 must be divisible by groups"));
    }
    let mut values = vec![0f64; shape.iter().product::<i64>() as usize];
    let window: i64 = shape[2..].iter().product();
    let centre = shape[2..].iter().fold(0, |at, n| at * n + n / 2);
    let out = shape[0] / groups;
    for group in 0..groups {
        for d in 0..out.min(shape[1]) {
            values[(((group * out + d) * shape[1] + d) * window + centre) as usize] = 1.0;
        }
    }
    Tensor::from_slice(&values, shape)?.to_dtype(crate::default_dtype()?)
}
