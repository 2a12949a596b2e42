//! Comparisons of gradients with finite differences.
use crate::context::{enable_grad, no_grad};
use crate::error::{Error, Result};
use crate::opts::GradOpts;
use crate::{DType, Status, Tensor};
use std::borrow::Borrow;

/// Options of [`gradcheck`] and [`gradgradcheck`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradcheckOptions {
    /// Step of the finite differences.
    pub eps: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
}
impl Default for GradcheckOptions {
    fn default() -> Self {
        GradcheckOptions { eps: 1e-6, atol: 1e-5, rtol: 1e-3 }
    }
}

type Checked<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

fn wrong(message: String) -> Error {
    Error::new(Status::Autograd, format!("gradcheck: {}", message))
}
pub(super) fn is_complex(t: &Tensor) -> bool {
    matches!(t.dtype(), DType::C64 | DType::C128)
}
fn is_differentiable(t: &Tensor) -> bool {
    let floating = [DType::F16, DType::BF16, DType::F32, DType::F64];
    is_complex(t) || floating.contains(&t.dtype())
}
fn real(t: &Tensor) -> Result<Tensor> {
    if is_complex(t) {
        t.view_as_real()
    } else {
        Ok(t.clone())
    }
}
fn numbers(t: &Tensor) -> Result<Vec<f64>> {
    t.to_dtype(DType::F64)?.to_vec()
}
/// Returns the results of f that can have a gradient, with complex numbers as pairs.
fn results(f: Checked, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    f(inputs)?.iter().filter(|t| is_differentiable(t)).map(real).collect()
}
/// Returns t with a step added to one of its numbers; a complex element has two.
fn moved(t: &Tensor, at: usize, step: f64) -> Result<Tensor> {
    let shape = real(t)?.shape().to_vec();
    let mut steps = vec![0.0; shape.iter().product::<i64>() as usize];
    steps[at] = step;
    let steps = Tensor::from_vec(steps, &shape)?.to_device(t.device())?;
    let steps = if is_complex(t) { steps.view_as_complex()? } else { steps };
    t.detach()?.add(&steps.to_dtype(t.dtype())?)
}
/// Returns the derivatives of all results by one number of an input.
fn differences(
    f: Checked,
    inputs: &[Tensor],
    input: usize,
    at: usize,
    eps: f64,
) -> Result<Vec<Vec<f64>>> {
    let ends = |step| {
        let mut changed = inputs.to_vec();
        changed[input] = moved(&inputs[input], at, step)?;
        let found = no_grad(|| results(f, &changed))?;
        found.iter().map(numbers).collect::<Result<Vec<_>>>()
    };
    let slope = |(up, down): (f64, f64)| (up - down) / (2.0 * eps);
    let slopes = |(up, down): (Vec<f64>, Vec<f64>)| up.into_iter().zip(down).map(slope).collect();
    Ok(ends(eps)?.into_iter().zip(ends(-eps)?).map(slopes).collect())
}
/// Returns the gradient of each number of a result with respect to an input.
fn gradients(out: &Tensor, input: &Tensor) -> Result<Vec<Vec<f64>>> {
    let n = out.numel();
    let unit = crate::eye(n)?.to_dtype(out.dtype())?.to_device(out.device())?;
    let zeros = vec![0.0; real(input)?.numel() as usize];
    let of_row = |j| {
        let cotangent = [Some(unit.select(0, j)?.reshape(out.shape())?)];
        let opts = GradOpts::new().grad_outputs(&cotangent).retain_graph(true).allow_unused(true);
        match crate::grad(&[out], &[input], opts)?.remove(0) {
            Some(g) => numbers(&real(&g)?),
            None => Ok(zeros.clone()),
        }
    };
    if out.requires_grad() {
        (0..n).map(of_row).collect()
    } else {
        Ok(vec![zeros; n as usize])
    }
}

fn check(f: Checked, inputs: &[Tensor], o: GradcheckOptions) -> Result<()> {
    let wanted = |t: &Tensor| is_differentiable(t) && t.requires_grad();
    if !inputs.iter().any(wanted) {
        let why = "gradcheck: inputs: at least one must be floating and require a gradient";
        return Err(Error::new(Status::InvalidArg, why));
    }
    let outs = enable_grad(|| results(f, inputs))?;
    for (i, (a, b)) in outs.iter().zip(enable_grad(|| results(f, inputs))?).enumerate() {
        if !a.allclose(&b, 0.0, 0.0, true)? {
            return Err(wrong(format!("result {} differs between two equal calls", i)));
        }
    }
    for (input, t) in inputs.iter().enumerate().filter(|(_, t)| wanted(t)) {
        let found = outs.iter().map(|out| gradients(out, t)).collect::<Result<Vec<_>>>()?;
        for at in 0..real(t)?.numel() as usize {
            let expected = differences(f, inputs, input, at, o.eps)?;
            for (result, (rows, slopes)) in found.iter().zip(&expected).enumerate() {
                for (j, (row, slope)) in rows.iter().zip(slopes).enumerate() {
                    let close = (row[at] - slope).abs() <= o.atol + o.rtol * slope.abs();
                    if close || row[at].is_nan() && slope.is_nan() {
                        continue;
                    }
                    return Err(wrong(format!(
                        "the derivative of number {} of result {} by number {} of input {} is {}: \
                         finite differences give {}",
                        j, result, at, input, row[at], slope
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Compares the gradients of f, with respect to the inputs that require one, with central
/// differences. Fails with [`Status::Autograd`], and names the derivative, where they differ by
/// more than `atol + rtol * |difference|`. Inputs should be of double precision; complex numbers
/// are pairs of real ones.
///
/// ```
/// let x = tt::Tensor::from([0.5, 2.0]).requires_grad_(true)?;
/// tt::gradcheck(|x| Ok(vec![x[0].sin()?.mul(&x[0])?]), &[&x], Default::default())?;
/// let e = tt::gradcheck(|x| Ok(vec![x[0].detach()?.exp()?]), &[&x], Default::default());
/// assert_eq!(e.unwrap_err().status, tt::Status::Autograd);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn gradcheck(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
    options: GradcheckOptions,
) -> Result<()> {
    let inputs: Vec<Tensor> = inputs.iter().map(|t| t.borrow().clone()).collect();
    check(&f, &inputs, options)
}

/// As [`gradcheck`], for the gradients of the gradients of f, also by the gradients of its results,
/// which are random.
///
/// ```
/// let x = tt::Tensor::from([0.5, 2.0]).requires_grad_(true)?;
/// tt::gradgradcheck(|x| Ok(vec![x[0].sin()?.mul(&x[0])?]), &[&x], Default::default())?;
/// # Ok::<(), tt::Error>(())
/// ```
pub fn gradgradcheck(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[impl Borrow<Tensor>],
    options: GradcheckOptions,
) -> Result<()> {
    let mut all: Vec<Tensor> = inputs.iter().map(|t| t.borrow().clone()).collect();
    let n = all.len();
    let wanted: Vec<usize> = (0..n).filter(|i| all[*i].requires_grad()).collect();
    for out in enable_grad(|| f(&all))?.iter().filter(|t| t.requires_grad()) {
        all.push(out.detach()?.randn_like()?.requires_grad_(true)?);
    }
    let gradient = |given: &[Tensor]| {
        enable_grad(|| {
            let mut x = given[..n].to_vec();
            for i in wanted.iter().filter(|i| !given[**i].requires_grad()) {
                x[*i] = x[*i].detach()?.requires_grad_(true)?;
            }
            let mut outs = f(&x)?;
            outs.retain(|t| t.requires_grad());
            let cotangents: Vec<Option<Tensor>> = given[n..].iter().cloned().map(Some).collect();
            let opts = GradOpts::new().grad_outputs(&cotangents).create_graph(true);
            let by: Vec<&Tensor> = wanted.iter().map(|i| &x[*i]).collect();
            let grads = crate::grad(&outs, &by, opts.allow_unused(true))?;
            Ok(grads.into_iter().flatten().collect())
        })
    };
    check(&gradient, &all, options)
}
