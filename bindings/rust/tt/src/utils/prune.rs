//! Masks that zero parts of parameters: torch.nn.utils.prune, with PyTorch's names in state dicts.
//!
//! A pruned parameter NAME is kept as the parameter NAME_orig, its mask as the buffer NAME_mask.
//! NAME is a buffer of their product, which is not saved and which a call of the module computes,
//! and of its copies, too. A pruned module cannot be frozen: [`remove`] first.
use super::hooked::{self, Kind};
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::opts::TopkOpts;
use crate::{DType, Module, Status, Tensor};

/// How many elements or slices are pruned, of those that are not pruned yet: `amount` may be an
/// `i64` or an `f64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many.
    Count(i64),
    /// This fraction of them, rounded; in [0, 1].
    Fraction(f64),
}
impl From<i64> for Amount {
    fn from(n: i64) -> Amount {
        Amount::Count(n)
    }
}
impl From<f64> for Amount {
    fn from(fraction: f64) -> Amount {
        Amount::Fraction(fraction)
    }
}

fn wrong(message: String) -> Error {
    Error::new(Status::InvalidArg, format!("prune: {}", message))
}
impl Amount {
    fn of(self, size: i64) -> Result<i64> {
        match self {
            Amount::Count(n) if (0..=size).contains(&n) => Ok(n),
            Amount::Count(n) => Err(wrong(format!("amount is {}: must be in [0, {}]", n, size))),
            // half to even, as Python rounds
            Amount::Fraction(f) if (0.0..=1.0).contains(&f) => {
                let exact = f * size as f64;
                let up = exact.round();
                let tie = (exact - exact.trunc()).abs() == 0.5 && up % 2.0 != 0.0;
                Ok(if tie { up - 1.0 } else { up } as i64)
            }
            Amount::Fraction(f) => Err(wrong(format!("amount is {}: must be in [0, 1]", f))),
        }
    }
}

/// Returns the positions of a mask of one dimension that are not 0.
fn left(mask: &Tensor) -> Result<Tensor> {
    mask.nonzero()?.reshape(&[-1])
}
/// Returns the mask with 0 at those of `places`, along dim, whose scores are the smallest.
fn without_smallest(
    mask: &Tensor,
    dim: i64,
    places: &Tensor,
    scores: &Tensor,
    amount: Amount,
) -> Result<Tensor> {
    let n = amount.of(scores.numel())?;
    let (_, smallest) = scores.topk_with(n, TopkOpts::new().largest(false))?;
    mask.index_fill(dim, &places.index_select(0, &smallest)?, 0.0)
}
fn random(n: i64, like: &Tensor) -> Result<Tensor> {
    crate::rand(&[n])?.to_device(like.device())
}

/// Applies `select` to the values, or the scores instead of them, and the mask of a parameter.
fn prune(
    m: &Module,
    name: &str,
    scores: Option<&Tensor>,
    select: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    let missing = || wrong(format!("name is \"{}\": {} has no such tensor", name, m.class()));
    let value = m.get_tensor(name)?.ok_or_else(missing)?;
    let scores = scores.unwrap_or(&value);
    if scores.shape() != value.shape() {
        return Err(wrong(format!(
            "scores are {:?}: must have the shape {:?} of {}",
            scores.shape(),
            value.shape(),
            name
        )));
    }
    let (original, mask) = (format!("{}_orig", name), format!("{}_mask", name));
    let pruned = is_hooked(m, name);
    if !pruned {
        hooked::check_parameter(m, name)?;
    }
    let before = if pruned { m.get_tensor(&mask)? } else { None };
    let made = no_grad(|| {
        let before = before.map_or_else(|| value.ones_like(), Ok)?;
        select(&scores.detach()?, &before)
    })?;
    m.register_buffer(&mask, Some(&made), true)?;
    if pruned {
        return m.register_buffer(name, Some(&compute(m, name)?), false);
    }
    m.register_parameter(&original, Some(&value))?;
    hooked::hook(m, Kind::Pruning, name)
}
fn is_hooked(m: &Module, name: &str) -> bool {
    hooked::is_hooked(m, Kind::Pruning, Some(name))
}
/// Returns the pruned tensor of this name.
pub(super) fn compute(m: &Module, name: &str) -> Result<Tensor> {
    let part = |end| {
        let name = format!("{}_{}", name, end);
        let missing = || wrong(format!("{} has no {}, which its pruning needs", m.class(), name));
        m.get_tensor(&name)?.ok_or_else(missing)
    };
    let original = part("orig")?;
    part("mask")?.to_dtype(original.dtype())?.mul(&original)
}

fn unstructured(
    scores: impl FnOnce(&Tensor) -> Result<Tensor>,
    mask: &Tensor,
    amount: Amount,
) -> Result<Tensor> {
    let flat = mask.reshape(&[-1])?;
    let places = left(&flat)?;
    without_smallest(&flat, 0, &places, &scores(&places)?, amount)?.reshape(mask.shape())
}
fn magnitudes<'a>(t: &'a Tensor) -> impl FnOnce(&Tensor) -> Result<Tensor> + 'a {
    move |places| t.reshape(&[-1])?.index_select(0, places)?.abs()
}
fn structured(
    mask: &Tensor,
    dim: i64,
    amount: Amount,
    scores: impl FnOnce(i64, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let ndim = mask.ndim();
    if ndim < 2 || dim < -ndim || dim >= ndim {
        let rule = "needs at least 2 dimensions, and dim must be one of them";
        return Err(wrong(format!("dim is {} of {:?}: {}", dim, mask.shape(), rule)));
    }
    let dim = dim.rem_euclid(ndim);
    let others: Vec<i64> = (0..ndim).filter(|d| *d != dim).collect();
    let slices = left(&mask.to_dtype(DType::F32)?.sum_dim(&others)?)?;
    let scores = scores(dim, &slices)?;
    without_smallest(mask, dim, &slices, &scores, amount)
}

/// Makes mask and original of a parameter without pruning it.
pub fn identity(module: &Module, name: &str) -> Result<()> {
    prune(module, name, None, |_, mask| Ok(mask.clone()))
}

/// Prunes random elements of a parameter.
pub fn random_unstructured(module: &Module, name: &str, amount: impl Into<Amount>) -> Result<()> {
    let draw = |places: &Tensor| random(places.numel(), places);
    prune(module, name, None, |_, mask| unstructured(draw, mask, amount.into()))
}

/// Prunes the elements of a parameter with the smallest absolute values, or where the absolute
/// values of `scores`, of the parameter's shape, are the smallest.
///
/// ```
/// use tt::utils::prune;
/// let layer = tt::nn::linear(4, 2)?;
/// prune::l1_unstructured(&layer, "weight", 0.5, None)?;
/// let zeros = layer.get_tensor("weight")?.unwrap().eq_scalar(0)?.sum()?;
/// assert_eq!(zeros.item::<i64>()?, 4);
/// assert!(layer.state_dict()?.contains_key("weight_orig"));
/// prune::remove(&layer, "weight")?;
/// assert_eq!(layer.state_dict()?.names(), ["weight", "bias"]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn l1_unstructured(
    module: &Module,
    name: &str,
    amount: impl Into<Amount>,
    scores: Option<&Tensor>,
) -> Result<()> {
    prune(module, name, scores, |t, mask| unstructured(magnitudes(t), mask, amount.into()))
}

/// Prunes random slices of a parameter along dim.
pub fn random_structured(
    module: &Module,
    name: &str,
    amount: impl Into<Amount>,
    dim: i64,
) -> Result<()> {
    prune(module, name, None, |_, mask| {
        structured(mask, dim, amount.into(), |_, slices| random(slices.numel(), slices))
    })
}

/// Prunes the slices of a parameter along dim with the smallest norms of order n, or those of
/// `scores`, of the parameter's shape.
pub fn ln_structured(
    module: &Module,
    name: &str,
    amount: impl Into<Amount>,
    n: f64,
    dim: i64,
    scores: Option<&Tensor>,
) -> Result<()> {
    prune(module, name, scores, |t, mask| {
        structured(mask, dim, amount.into(), |dim, slices| {
            let rows = t.movedim(&[dim], &[0])?.index_select(0, slices)?;
            rows.reshape(&[slices.numel(), -1])?.norm(n, &[1])
        })
    })
}

/// Prunes the elements of a parameter where a mask of its shape is 0.
pub fn custom_from_mask(module: &Module, name: &str, mask: &Tensor) -> Result<()> {
    prune(module, name, None, |t, before| {
        if mask.shape() != before.shape() {
            let rule = format!("must have the shape {:?} of {}", before.shape(), name);
            return Err(wrong(format!("mask is {:?}: {}", mask.shape(), rule)));
        }
        before.mul(&mask.to_dtype(t.dtype())?)
    })
}

/// The elements that [`global_unstructured`] prunes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The elements with the smallest absolute values.
    L1Unstructured,
    /// Random elements.
    RandomUnstructured,
}

/// Prunes elements of several parameters, of all that they have together.
pub fn global_unstructured(
    parameters: &[(&Module, &str)],
    method: Method,
    amount: impl Into<Amount>,
) -> Result<()> {
    let (mut values, mut masks) = (vec![], vec![]);
    for (m, name) in parameters {
        let missing = || wrong(format!("{} has no tensor \"{}\"", m.class(), name));
        let value = m.get_tensor(name)?.ok_or_else(missing)?.detach()?;
        let mask = if is_hooked(m, name) { m.get_tensor(&format!("{}_mask", name))? } else { None };
        masks.push(mask.map_or_else(|| value.ones_like(), Ok)?.reshape(&[-1])?);
        values.push(value);
    }
    let flat = values.iter().map(|t| t.reshape(&[-1])).collect::<Result<Vec<_>>>()?;
    let (all, mask) = (crate::cat(&flat)?, crate::cat(&masks)?);
    let mask = match method {
        Method::L1Unstructured => unstructured(magnitudes(&all), &mask, amount.into()),
        Method::RandomUnstructured => {
            unstructured(|places| random(places.numel(), places), &mask, amount.into())
        }
    }?;
    let mut start = 0;
    for ((m, name), value) in parameters.iter().zip(&values) {
        let part = mask.narrow(0, start, value.numel())?.reshape(value.shape())?;
        custom_from_mask(m, name, &part)?;
        start += value.numel();
    }
    Ok(())
}

/// Writes the pruned values into the original, which is the parameter again, and removes the mask.
pub fn remove(module: &Module, name: &str) -> Result<()> {
    if !is_hooked(module, name) {
        return Err(wrong(format!("{} of {} is not pruned", name, module.class())));
    }
    let original = format!("{}_orig", name);
    let missing = || wrong(format!("{} has no {}", module.class(), original));
    let parameter = module.get_tensor(&original)?.ok_or_else(missing)?;
    let value = hooked::overwritten(&parameter, &no_grad(|| compute(module, name))?)?;
    hooked::unhook(module, Kind::Pruning, name, &value)?;
    module.register_parameter(&original, None)?;
    module.register_buffer(&format!("{}_mask", name), None, true)
}

/// Returns whether a parameter of the module, or of one below it, is pruned.
pub fn is_pruned(module: &Module) -> Result<bool> {
    let mut todo = vec![module.clone()];
    while let Some(m) = todo.pop() {
        if hooked::is_hooked(&m, Kind::Pruning, None) {
            return Ok(true);
        }
        for i in 0..m.num_children() {
            todo.push(m.child(i)?);
        }
    }
    Ok(false)
}
