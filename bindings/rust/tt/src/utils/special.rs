//! Bessel functions and orthogonal polynomials under the names of torch.special. Its other
//! functions are methods of [`Tensor`], such as [`Tensor::erfcx`].
use crate::dispatch::{Op, Value};
use crate::error::{Error, Result};
use crate::{default_dtype, DType, Status, Tensor};

/// Returns x, or a copy in the default dtype if it has integers.
fn floating(x: &Tensor, name: &str) -> Result<Tensor> {
    match x.dtype() {
        DType::C64 | DType::C128 => {
            let why = format!("{}: x is {}: must be real", name, x.dtype());
            Err(Error::new(Status::Dtype, why))
        }
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Ok(x.clone()),
        _ => x.to_dtype(default_dtype()?),
    }
}
/// Calls an operator that computes several functions, by number.
fn numbered(op: &str, x: Tensor, numbers: &[i64]) -> Result<Tensor> {
    let mut args = vec![Value::Tensor(x)];
    args.extend(numbers.iter().map(|n| Value::Int(*n)));
    Ok(Op::find(op)?.call(&args)?.remove(0))
}

macro_rules! bessel {
    ($($(#[$doc:meta])* $name:ident = $number:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(x: &Tensor) -> Result<Tensor> {
            numbered("bessel", floating(x, stringify!($name))?, &[$number])
        }
    )* };
}
// In the order of `BesselFunction` in src/plan/special_function.h.
bessel! {
    /// Computes the Bessel function of the first kind of order 0, elementwise.
    ///
    /// ```
    /// let y = tt::special::bessel_j0(&tt::Tensor::from([0.0, 1.0]))?;
    /// assert!((y.to_vec::<f64>()?[1] - 0.7651976865579666).abs() < 1e-15);
    /// # Ok::<(), tt::Error>(())
    /// ```
    bessel_j0 = 0;
    /// Computes the Bessel function of the first kind of order 1, elementwise.
    bessel_j1 = 1;
    /// Computes the Bessel function of the second kind of order 0, elementwise: nan below 0.
    bessel_y0 = 2;
    /// Computes the Bessel function of the second kind of order 1, elementwise: nan below 0.
    bessel_y1 = 3;
    /// Computes the modified Bessel function of the second kind of order 0: nan below 0.
    modified_bessel_k0 = 4;
    /// Computes the modified Bessel function of the second kind of order 1: nan below 0.
    modified_bessel_k1 = 5;
    /// Computes exp(x) modified_bessel_k0(x), elementwise, without underflow.
    scaled_modified_bessel_k0 = 6;
    /// Computes exp(x) modified_bessel_k1(x), elementwise, without underflow.
    scaled_modified_bessel_k1 = 7;
    /// Computes the Airy function Ai, elementwise. It has no gradient.
    airy_ai = 8;
}

/// Computes sin(x) / x, elementwise: 1 at 0, 0 at infinity.
pub fn spherical_bessel_j0(x: &Tensor) -> Result<Tensor> {
    let given = floating(x, "spherical_bessel_j0")?;
    let x = given.to_dtype(DType::F64)?;
    let zero = x.eq_scalar(0)?;
    let quotient = x.masked_fill(&x.isinf()?, 0.0)?.sin()?.div(&x.masked_fill(&zero, 1.0)?)?;
    quotient.masked_fill(&zero, 1.0)?.to_dtype(given.dtype())
}

/// Computes p(n) at x: 0 for negative n, nan beyond the limit.
fn polynomial(name: &str, x: &Tensor, n: i64, kind: i64, limited: bool) -> Result<Tensor> {
    let x = floating(x, name)?;
    let limit = match x.dtype() {
        DType::F32 => 128,
        DType::F64 => 512,
        _ => 1024, // as PyTorch's
    };
    if n < 0 || limited && n > limit {
        return x.zeros_like()?.add_scalar(if n < 0 { 0.0 } else { f64::NAN });
    }
    numbered("orthogonal_polynomial", x, &[kind, n])
}
macro_rules! polynomials {
    ($($(#[$doc:meta])* $name:ident = $kind:expr, $limited:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(x: &Tensor, n: i64) -> Result<Tensor> {
            polynomial(stringify!($name), x, n, $kind, $limited)
        }
    )* };
}
// In the order of `Polynomial` in src/plan/special_function.h; from 8 on those of 2 x - 1.
polynomials! {
    /// Computes the Chebyshev polynomial of the first kind T_n(x), elementwise; 0 for negative n.
    ///
    /// ```
    /// let y = tt::special::chebyshev_polynomial_t(&tt::Tensor::from([0.5, 2.0]), 2)?;
    /// assert_eq!(y.to_vec::<f64>()?, [-0.5, 7.0]);
    /// # Ok::<(), tt::Error>(())
    /// ```
    chebyshev_polynomial_t = 0, false;
    /// Computes the Chebyshev polynomial of the second kind U_n(x), elementwise.
    chebyshev_polynomial_u = 1, false;
    /// Computes the Chebyshev polynomial of the third kind V_n(x), elementwise.
    chebyshev_polynomial_v = 2, false;
    /// Computes the Chebyshev polynomial of the fourth kind W_n(x), elementwise.
    chebyshev_polynomial_w = 3, false;
    /// Computes the Hermite polynomial of physics H_n(x), elementwise.
    hermite_polynomial_h = 4, true;
    /// Computes the Hermite polynomial of probability He_n(x), elementwise.
    hermite_polynomial_he = 5, true;
    /// Computes the Laguerre polynomial L_n(x), elementwise.
    laguerre_polynomial_l = 6, false;
    /// Computes the Legendre polynomial P_n(x), elementwise.
    legendre_polynomial_p = 7, false;
    /// Computes T_n(2 x - 1), elementwise.
    shifted_chebyshev_polynomial_t = 8, false;
    /// Computes U_n(2 x - 1), elementwise.
    shifted_chebyshev_polynomial_u = 9, false;
    /// Computes V_n(2 x - 1), elementwise.
    shifted_chebyshev_polynomial_v = 10, false;
    /// Computes W_n(2 x - 1), elementwise.
    shifted_chebyshev_polynomial_w = 11, false;
}
