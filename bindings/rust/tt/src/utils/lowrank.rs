//! Decompositions of low rank by random projections.
use crate::error::{Error, Result};
use crate::opts::{LinalgSvdOpts, MeanDimOpts, RandnOpts};
use crate::{Status, Tensor};

/// Returns U, S and V of rank q whose product U diag(S) Vᴴ is near `a`, by random projections and
/// `niter` power iterations (Halko et al. 2009). For a much smaller q than `a` has rows and columns
/// it is faster than [`linalg_svd`](Tensor::linalg_svd).
///
/// ```
/// let a = tt::randn(&[30, 3])?.matmul(&tt::randn(&[3, 20])?)?; // of rank 3
/// let (u, s, v) = tt::utils::svd_lowrank(&a, 4, 2)?;
/// let near = u.mul(&s)?.matmul(&v.adjoint()?)?;
/// assert!(near.allclose(&a, 1e-3, 1e-3, false)?);
/// # Ok::<(), tt::Error>(())
/// ```
#[doc(alias = "torch.svd_lowrank")]
pub fn svd_lowrank(a: &Tensor, q: i64, niter: usize) -> Result<(Tensor, Tensor, Tensor)> {
    let wide = a.size(-2) < a.size(-1);
    let tall = if wide { a.adjoint()? } else { a.clone() };
    let flat = tall.adjoint()?;
    let random = crate::randn_with(&[tall.size(-1), q], RandnOpts::new().dtype(tall.dtype()))?;
    let mut basis = tall.matmul(&random)?.linalg_qr()?.0;
    for _ in 0..niter {
        basis = flat.matmul(&basis)?.linalg_qr()?.0;
        basis = tall.matmul(&basis)?.linalg_qr()?.0;
    }
    let small = basis.adjoint()?.matmul(&tall)?;
    let (u, s, vh) = small.linalg_svd_with(LinalgSvdOpts::new().full_matrices(false))?;
    let (left, right) = (basis.matmul(&u)?, vh.adjoint()?);
    Ok(if wide { (right, s, left) } else { (left, s, right) })
}

/// Returns the q principal components of the rows of `a` as [`svd_lowrank`] of `a` less the means
/// of its columns: the columns of V are the directions. PyTorch's q is at most 6 by default.
#[doc(alias = "torch.pca_lowrank")]
pub fn pca_lowrank(a: &Tensor, q: i64, niter: usize) -> Result<(Tensor, Tensor, Tensor)> {
    if q < 0 || q > a.size(-2).min(a.size(-1)) {
        let why = format!("pca_lowrank: q is {}, a is {:?}: q must fit both sizes", q, a.shape());
        return Err(Error::new(Status::InvalidArg, why));
    }
    svd_lowrank(&a.sub(&a.mean_dim_with(&[-2], MeanDimOpts::new().keepdim(true))?)?, q, niter)
}
