//! Weights that are computed from other parameters before each forward: torch.nn.utils.parametrize
//! and torch.nn.utils.parametrizations, with PyTorch's names in state dicts.
//!
//! The weight is a buffer of the module that is not saved. Each call of the module computes it;
//! [`Module::get_tensor`] returns that of the last call. Copies of a module compute theirs. A
//! module with parametrizations cannot be frozen: call [`remove_parametrizations`] first.
use super::gradcheck::is_complex;
use super::hooked::{self, Kind};
use crate::context::no_grad;
use crate::error::{Error, Result};
use crate::opts::*;
use crate::{DType, Module, Status, Tensor};

fn wrong(message: String) -> Error {
    Error::new(Status::InvalidArg, message)
}
/// Returns the tensor of this name.
fn tensor_of(m: &Module, name: &str) -> Result<Tensor> {
    let missing = || wrong(format!("name is \"{}\": {} has no such tensor", name, m.class()));
    m.get_tensor(name)?.ok_or_else(missing)
}
/// Returns the parametrizations of a tensor: modules "0", "1", … and the parameters "original", or
/// "original0", "original1", …
fn list_of(m: &Module, name: &str) -> Result<Module> {
    m.get_submodule(&format!("parametrizations.{}", name))
}
fn originals_of(list: &Module) -> Result<Vec<Tensor>> {
    let is_own = |name: &String| name.starts_with("original") && !name.contains('.');
    let own = list.named_parameters()?;
    let names: Vec<String> = own.keys().filter(is_own).collect();
    names.iter().map(|name| own.tensor(name)).collect()
}
fn computed(list: &Module) -> Result<Tensor> {
    let first = list.child(0)?.forward_list(&originals_of(list)?)?;
    let none = || wrong("parametrization: it returns nothing: must be a tensor".into());
    let mut x = first.into_iter().next().ok_or_else(none)?;
    for i in 1..list.num_children() {
        x = list.child(i)?.forward(&x)?;
    }
    Ok(x)
}

/// Returns the parametrized tensor of this name.
pub(super) fn compute(m: &Module, name: &str) -> Result<Tensor> {
    computed(&list_of(m, name)?)
}

/// Returns whether the tensor of this name, or any tensor of the module, is parametrized.
pub fn is_parametrized(module: &Module, name: Option<&str>) -> bool {
    hooked::is_hooked(module, Kind::Parametrization, name)
}

/// Makes the parameter `name` the result of a module for the parameter's value, which becomes the
/// parameter `parametrizations.NAME.original`. A second parametrization of a name gets the result
/// of the first.
///
/// ```
/// use tt::{nn, utils::parametrize, Module};
/// let symmetric = Module::from_fn("Symmetric", |x| x.triu()?.add(&x.triu()?.t()?))?;
/// let layer = nn::linear(3, 3)?;
/// parametrize::register_parametrization(&layer, "weight", &symmetric)?;
/// let weight = layer.get_tensor("weight")?.unwrap();
/// assert!(weight.equal(&weight.t()?)?);
/// assert!(layer.state_dict()?.contains_key("parametrizations.weight.original"));
/// # Ok::<(), tt::Error>(())
/// ```
pub fn register_parametrization(
    module: &Module,
    name: &str,
    parametrization: &Module,
) -> Result<()> {
    parametrization.train(module.training())?;
    let value = tensor_of(module, name)?;
    if is_parametrized(module, Some(name)) {
        let list = list_of(module, name)?;
        check_like(&no_grad(|| parametrization.forward(&value))?, &value)?;
        list.append(parametrization)?;
        return module.register_buffer(name, Some(&computed(&list)?), false);
    }
    check_like(&no_grad(|| parametrization.forward(&value))?, &value)?;
    register_with(module, name, parametrization, &[("original", &value)])
}
fn check_like(made: &Tensor, value: &Tensor) -> Result<()> {
    if made.shape() == value.shape() && made.dtype() == value.dtype() {
        return Ok(());
    }
    Err(wrong(format!(
        "parametrization: it returns {} {:?}: must be {} {:?}",
        made.dtype(),
        made.shape(),
        value.dtype(),
        value.shape()
    )))
}
/// Registers the first parametrization of a name, and the parameters that it gets.
fn register_with(
    m: &Module,
    name: &str,
    parametrization: &Module,
    originals: &[(&str, &Tensor)],
) -> Result<()> {
    hooked::check_parameter(m, name)?;
    let list = crate::nn::module_list()?;
    list.append(parametrization)?;
    for (original, t) in originals {
        list.register_parameter(original, Some(t))?;
    }
    let all = match m.get_submodule("parametrizations") {
        Ok(all) => all,
        Err(_) => crate::nn::module_dict()?,
    };
    all.register_module(name, &list)?;
    m.register_module("parametrizations", &all)?;
    hooked::hook(m, Kind::Parametrization, name)
}

/// Makes the tensor `name` a parameter again, with the value that it has, or, unless
/// `leave_parametrized`, with that of the original. A single original becomes this parameter, so
/// that an optimizer of the original goes on updating it.
pub fn remove_parametrizations(
    module: &Module,
    name: &str,
    leave_parametrized: bool,
) -> Result<()> {
    if !is_parametrized(module, Some(name)) {
        let why = format!("name is \"{}\": {} has no such parametrization", name, module.class());
        return Err(wrong(why));
    }
    let list = list_of(module, name)?;
    let originals = originals_of(&list)?;
    if !leave_parametrized && originals.len() != 1 {
        let why = "leave_parametrized is false: the tensor is computed from several tensors";
        return Err(wrong(why.into()));
    }
    let learnt = originals.iter().any(Tensor::requires_grad);
    let found = no_grad(|| computed(&list)?.detach())?;
    let value = match &originals[..] {
        [original] if leave_parametrized => hooked::overwritten(original, &found)?,
        [original] => original.clone(),
        _ => found.copy()?.requires_grad_(learnt)?,
    };
    hooked::unhook(module, Kind::Parametrization, name, &value)?;
    module.get_submodule("parametrizations")?.register_module(name, &crate::nn::module_list()?)
}

/// Returns the norm of each slice of v along dim, with the number of dimensions of v.
fn norm_except_dim(v: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    let dim = match dim {
        Some(dim) => dim,
        None => return v.norm(2.0, &[]),
    };
    let mut shape = vec![1; v.shape().len()];
    shape[dim as usize] = -1;
    let rows = v.transpose(0, dim)?.reshape(&[v.shape()[dim as usize], -1])?;
    rows.norm(2.0, &[1])?.reshape(&shape)
}

/// Parametrizes a weight by its norms, `original0`, and its directions, `original1`: Salimans and
/// Kingma, 2016. There is a norm for each index of `dim`, which counts from 0, or one norm if it is
/// None. PyTorch's default is `Some(0)`.
///
/// ```
/// let layer = tt::nn::linear(3, 2)?;
/// let before = layer.forward(&tt::ones(&[1, 3])?)?;
/// tt::utils::parametrize::weight_norm(&layer, "weight", Some(0))?;
/// let norms = layer.get_tensor("parametrizations.weight.original0")?.unwrap();
/// assert_eq!(norms.shape(), [2, 1]);
/// assert!(layer.forward(&tt::ones(&[1, 3])?)?.allclose(&before, 1e-5, 1e-6, false)?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn weight_norm(module: &Module, name: &str, dim: Option<i64>) -> Result<()> {
    let weight = tensor_of(module, name)?;
    if let Some(dim) = dim.filter(|d| !(0..weight.ndim()).contains(d)) {
        let rule = format!("must be in [0, {}) or None", weight.ndim());
        return Err(wrong(format!("weight_norm: dim is {}: {}", dim, rule)));
    }
    let norms = no_grad(|| norm_except_dim(&weight, dim))?;
    let norms = norms.detach()?.copy()?.requires_grad_(weight.requires_grad())?;
    let of_parts = Module::custom("_WeightNorm", move |_, x| match x {
        [Some(g), Some(v)] => Ok(vec![v.mul(&g.div(&norm_except_dim(v, dim)?)?)?]),
        _ => Err(wrong("_WeightNorm: takes norms and directions".into())),
    })?;
    register_with(module, name, &of_parts, &[("original0", &norms), ("original1", &weight)])
}

/// Options of [`spectral_norm`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralNormOptions {
    /// Number of power iterations for each computation in training.
    pub n_power_iterations: i64,
    /// Smallest norm by which is divided.
    pub eps: f64,
    /// Dimension of the outputs; None: 1 for transposed convolutions, else 0.
    pub dim: Option<i64>,
}
impl Default for SpectralNormOptions {
    fn default() -> Self {
        SpectralNormOptions { n_power_iterations: 1, eps: 1e-12, dim: None }
    }
}

fn normalized(x: &Tensor, eps: f64) -> Result<Tensor> {
    x.div(&x.norm(2.0, &[])?.clamp(Some(eps.into()), None)?)
}
/// Returns a weight as a matrix with a row for each index in dim.
fn as_matrix(weight: &Tensor, dim: i64) -> Result<Tensor> {
    weight.movedim(&[dim], &[0])?.flatten_with(FlattenOpts::new().start_dim(1))
}
/// Returns the singular vectors after n power iterations.
fn iterated(matrix: &Tensor, u: Tensor, v: Tensor, n: i64, eps: f64) -> Result<(Tensor, Tensor)> {
    (0..n).try_fold((u, v), |(_, v), _| {
        let u = normalized(&matrix.mv(&v)?, eps)?;
        let v = normalized(&matrix.t()?.conj()?.mv(&u)?, eps)?;
        Ok((u, v))
    })
}

/// Makes a weight that which is learnt, divided by its largest singular value: Miyato et al., 2018.
/// Power iterations estimate the singular value, further ones in each call in training.
///
/// ```
/// use tt::utils::parametrize;
/// let layer = tt::nn::linear(20, 40)?;
/// parametrize::spectral_norm(&layer, "weight", Default::default())?;
/// for _ in 0..20 {
///     layer.forward(&tt::ones(&[1, 20])?)?;
/// }
/// let largest = layer.get_tensor("weight")?.unwrap().linalg_svdvals()?.select(0, 0)?;
/// assert!((largest.item::<f32>()? - 1.0).abs() < 0.05);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn spectral_norm(module: &Module, name: &str, options: SpectralNormOptions) -> Result<()> {
    let SpectralNormOptions { n_power_iterations: n, eps, dim } = options;
    let weight = tensor_of(module, name)?;
    let ndim = weight.ndim();
    let transposed = module.class().starts_with("ConvTranspose");
    let given = dim.unwrap_or(transposed as i64);
    if given < -ndim || given >= ndim {
        let why = format!("spectral_norm: dim is {}: must be in [{}, {})", given, -ndim, ndim);
        return Err(wrong(why));
    }
    if n < 1 {
        let why = format!("spectral_norm: n_power_iterations is {}: must be at least 1", n);
        return Err(wrong(why));
    }
    let dim = given.rem_euclid(ndim);
    let scaled = Module::custom("_SpectralNorm", move |m, x| {
        let weight = x[0].as_ref().ok_or_else(|| wrong("_SpectralNorm: takes a weight".into()))?;
        if ndim == 1 {
            return Ok(vec![normalized(weight, eps)?]);
        }
        let matrix = as_matrix(weight, dim)?;
        let (u, v) = (tensor_of(m, "_u")?, tensor_of(m, "_v")?);
        if m.training() {
            no_grad(|| {
                let found = iterated(&matrix.detach()?, u.clone(), v.clone(), n, eps)?;
                // SAFETY: writes numbers alone, as a batch normalization does to its statistics.
                unsafe { u.copy_(&found.0).and_then(|()| v.copy_(&found.1)) }
            })?;
        }
        let (u, v) = (u.copy()?, v.copy()?); // later iterations write to the buffers
        Ok(vec![weight.div(&u.vdot(&matrix.mv(&v)?)?)?])
    })?;
    scaled.train(module.training())?;
    if ndim > 1 {
        let (u, v) = no_grad(|| {
            let matrix = as_matrix(&weight.detach()?, dim)?;
            let like = RandnOpts::new().dtype(matrix.dtype()).device(matrix.device());
            let draw = |i: usize| normalized(&crate::randn_with(&[matrix.shape()[i]], like)?, eps);
            let (u, v) = (draw(0)?, draw(1)?);
            iterated(&matrix, u, v, 15, eps)
        })?;
        scaled.register_buffer("_u", Some(&u), true)?;
        scaled.register_buffer("_v", Some(&v), true)?;
    }
    register_with(module, name, &scaled, &[("original", &weight)])
}

/// How [`orthogonal`] maps a matrix to an orthogonal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrthogonalMap {
    /// The matrix exponential of the skew-symmetric part.
    MatrixExp,
    /// Cayley's map of the skew-symmetric part.
    Cayley,
    /// The product of the Householder reflections of the columns.
    Householder,
}

fn adjoint(x: &Tensor) -> Result<Tensor> {
    x.transpose(-2, -1)
}
fn diagonal(x: &Tensor) -> Result<Tensor> {
    x.diagonal_with(DiagonalOpts::new().dim1(-2).dim2(-1))
}
/// Returns n rows of k columns of zeros or of random numbers, in as many batches as x has.
fn beside(x: &Tensor, columns: i64, random: bool) -> Result<Tensor> {
    let mut shape = x.shape().to_vec();
    *shape.last_mut().expect("a matrix") = columns;
    let (dtype, device) = (x.dtype(), x.device());
    let more = if random {
        crate::randn_with(&shape, RandnOpts::new().dtype(dtype).device(device))?
    } else {
        crate::zeros_with(&shape, ZerosOpts::new().dtype(dtype).device(device))?
    };
    crate::cat_with(&[x, &more], CatOpts::new().dim(-1))
}
fn identity(rows: i64, columns: i64, like: &Tensor) -> Result<Tensor> {
    let opts = EyeOpts::new().m(columns).dtype(like.dtype()).device(like.device());
    crate::eye_with(rows, opts)
}
/// Returns Q of the QR decomposition with a positive diagonal of R.
fn orthogonal_factor(a: &Tensor) -> Result<Tensor> {
    let (q, r) = a.qr()?;
    q.mul(&diagonal(&r)?.sgn()?.unsqueeze(-2)?)
}
fn is_orthogonal(q: &Tensor) -> Result<bool> {
    let (rows, columns) = (q.shape()[q.shape().len() - 2], q.shape()[q.shape().len() - 1]);
    let eps = if q.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let error = adjoint(q)?.matmul(q)?.sub(&identity(columns, columns, q)?)?.abs()?.max()?;
    Ok(error.item::<f64>()? <= 10.0 * rows as f64 * eps)
}
fn of_skew(x: &Tensor, map: OrthogonalMap) -> Result<Tensor> {
    let (n, k) = (x.shape()[x.shape().len() - 2], x.shape()[x.shape().len() - 1]);
    let lower = x.tril()?;
    let square = if n == k { lower } else { beside(&lower, n - k, false)? };
    let a = square.sub(&adjoint(&square)?)?;
    let q = if map == OrthogonalMap::MatrixExp {
        a.matrix_exp()?
    } else {
        let (one, half) = (identity(n, n, &a)?, a.mul_scalar(0.5)?);
        one.sub(&half)?.linalg_solve(&one.add(&half)?)?
    };
    q.narrow(-1, 0, k)
}
fn of_reflections(x: &Tensor) -> Result<Tensor> {
    let a = x.tril_with(TrilOpts::new().diagonal(-1))?;
    let tau = a.mul(&a)?.sum_dim(&[-2])?.add_scalar(1)?.reciprocal()?.mul_scalar(2)?;
    let signs = diagonal(&x.detach()?)?.trunc()?;
    a.linalg_householder_product(&tau)?.mul(&signs.unsqueeze(-2)?)
}

/// Parametrizes a real matrix, or a batch of them, so that its columns are orthonormal, or its
/// rows if there are fewer. Without a map it is `MatrixExp` for square matrices, else
/// `Householder`. With `use_trivialization`, PyTorch's default, the orthogonal matrix of the
/// original is multiplied by a fixed one, the buffer `base`: the weight if it is orthogonal, else
/// its factor Q.
///
/// ```
/// let layer = tt::nn::linear(4, 4)?;
/// tt::utils::parametrize::orthogonal(&layer, "weight", None, true)?;
/// let q = layer.get_tensor("weight")?.unwrap();
/// assert!(q.matmul(&q.t()?)?.allclose(&tt::eye(4)?, 1e-5, 1e-5, false)?);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn orthogonal(
    module: &Module,
    name: &str,
    map: Option<OrthogonalMap>,
    use_trivialization: bool,
) -> Result<()> {
    let weight = tensor_of(module, name)?;
    let (n, k) = match weight.shape() {
        [.., n, k] if !is_complex(&weight) => (*n, *k),
        shape => {
            let rule = "must be a matrix, or a batch of matrices, of real numbers";
            let found = format!("{} is {} {:?}", name, weight.dtype(), shape);
            return Err(wrong(format!("orthogonal: {}: {}", found, rule)));
        }
    };
    let usual = if n == k { OrthogonalMap::MatrixExp } else { OrthogonalMap::Householder };
    let map = map.unwrap_or(usual);
    let turned = move |x: &Tensor| if n < k { adjoint(x) } else { Ok(x.clone()) };
    let mapped = Module::custom("_Orthogonal", move |m, x| {
        let x = turned(x[0].as_ref().ok_or_else(|| wrong("_Orthogonal: takes a matrix".into()))?)?;
        let q =
            if map == OrthogonalMap::Householder { of_reflections(&x)? } else { of_skew(&x, map)? };
        let q = if use_trivialization { tensor_of(m, "base")?.matmul(&q)? } else { q };
        Ok(vec![turned(&q)?])
    })?;
    let original = no_grad(|| {
        let tall = turned(&weight.detach()?)?;
        if use_trivialization {
            let base = match () {
                () if n != k => orthogonal_factor(&beside(&tall, (n - k).abs(), true)?)?,
                () if is_orthogonal(&tall)? => tall.copy()?,
                () => orthogonal_factor(&tall)?,
            };
            mapped.register_buffer("base", Some(&base), true)?;
            return identity(n, k, &weight)?.neg()?.expand(weight.shape())?.copy();
        }
        if map != OrthogonalMap::Householder {
            return Ok(weight.clone());
        }
        let (a, tau) = tall.geqrf()?;
        let signs = diagonal(&a)?.sign()?;
        let signs = tau.eq_scalar(0)?.r#where(&signs.neg()?, &signs)?;
        let opts = DiagonalScatterOpts::new().dim1(-2).dim2(-1);
        turned(&a.diagonal_scatter_with(&signs, opts)?)?.copy()
    })?;
    let original = if original.is_leaf() && original.data_ptr() == weight.data_ptr() {
        original
    } else {
        original.detach()?.requires_grad_(weight.requires_grad())?
    };
    register_with(module, name, &mapped, &[("original", &original)])
}
