"""Bessel functions and the Airy function, by the approximations of the Cephes library.

Each has one formula near 0 and another for large arguments. Both are computed for all elements,
where the other one holds for a harmless argument.
"""
from __future__ import annotations

from math import inf, nan, pi, sqrt
from typing import Any

from .. import _ops as ops
from .._tensor import Tensor
from . import _cephes as table
from ._functions import elementwise, quotient, series


def wave(x: Tensor, cosine: Any, sine: Any, phase: float) -> Tensor:
    """Returns the asymptotic form for x > 5: a cosine and a sine behind x by a phase, with
    amplitudes that change slowly."""
    w = 5 / x
    steady, changing = quotient(w * w, cosine), w * quotient(w * w, sine)
    angle = x - phase
    return sqrt(2 / pi) / x.sqrt() * (steady * angle.cos() - changing * angle.sin())


@elementwise(lambda x, y: -bessel_j1(x))
def bessel_j0(x: Tensor) -> Tensor:
    """Computes the Bessel function of the first kind of order 0, elementwise."""
    x = x.abs()
    z = x.clamp(max=5) ** 2
    zeros = (z - 5.78318596294678452118e00) * (z - 3.04712623436620863991e01)
    far = wave(x.clamp(min=5), table.J0_COS, table.J0_SIN, pi / 4)
    return ops.where(x <= 5, zeros * quotient(z, table.J0_NEAR), far)


@elementwise(lambda x, y: bessel_j0(x) - divided(y, x, 0.5))
def bessel_j1(x: Tensor) -> Tensor:
    """Computes the Bessel function of the first kind of order 1, elementwise."""
    near, size = x.clamp(-5, 5), x.abs()
    z = near * near
    zeros = (z - 1.46819706421238932572e01) * (z - 4.92184563216946036703e01)
    far = wave(size.clamp(min=5), table.J1_COS, table.J1_SIN, 3 * pi / 4) * x.sign()
    return ops.where(size <= 5, near * zeros * quotient(z, table.J1_NEAR), far)


def divided(y: Tensor, x: Tensor, at_zero: float) -> Tensor:
    """Returns y / x; at_zero where x is 0."""
    is_zero = x == 0
    return (y / x.masked_fill(is_zero, 1)).masked_fill(is_zero, at_zero)


def of_positive(x: Tensor, near: Tensor, far: Tensor, limit: float, at_zero: float) -> Tensor:
    """Joins the parts of a function of positive numbers: nan for negative ones."""
    joined = ops.where(x <= limit, near, far)
    return joined.masked_fill(x == 0, at_zero).masked_fill(x < 0, nan)


@elementwise(lambda x, y: -bessel_y1(x))
def bessel_y0(x: Tensor) -> Tensor:
    """Computes the Bessel function of the second kind of order 0, elementwise: nan below 0."""
    small = x.clamp(max=5)
    near = quotient(small * small, table.Y0_NEAR) + 2 / pi * small.log() * bessel_j0(small)
    far = wave(x.clamp(min=5), table.J0_COS, table.J0_SIN, pi / 4 + pi / 2)
    return of_positive(x, near, far, 5, -inf)


@elementwise(lambda x, y: bessel_y0(x) - y / x)
def bessel_y1(x: Tensor) -> Tensor:
    """Computes the Bessel function of the second kind of order 1, elementwise: nan below 0."""
    small = x.clamp(max=5)
    singular = 2 / pi * (bessel_j1(small) * small.log() - 1 / small)
    near = small * quotient(small * small, table.Y1_NEAR) + singular
    far = wave(x.clamp(min=5), table.J1_COS, table.J1_SIN, 3 * pi / 4 + pi / 2)
    return of_positive(x, near, far, 5, -inf)


def k0_near(x: Tensor) -> Tensor:
    return series(x * x - 2, table.K0_NEAR) - (x / 2).log() * ops.i0(x)


def k1_near(x: Tensor) -> Tensor:
    return (x / 2).log() * ops.i1(x) + series(x * x - 2, table.K1_NEAR) / x


def scaled_far(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    return series(8 / x - 2, coefficients) / x.sqrt()


@elementwise(lambda x, y: -modified_bessel_k1(x))
def modified_bessel_k0(x: Tensor) -> Tensor:
    """Computes the modified Bessel function of the second kind of order 0, elementwise: nan below
    0."""
    big = x.clamp(min=2)
    far = (-big).exp() * scaled_far(big, table.K0_FAR)
    return of_positive(x, k0_near(x.clamp(max=2)), far, 2, inf)


@elementwise(lambda x, y: -modified_bessel_k0(x) - y / x)
def modified_bessel_k1(x: Tensor) -> Tensor:
    """Computes the modified Bessel function of the second kind of order 1, elementwise: nan below
    0."""
    big = x.clamp(min=2)
    far = (-big).exp() * scaled_far(big, table.K1_FAR)
    return of_positive(x, k1_near(x.clamp(max=2)), far, 2, inf)


@elementwise(lambda x, y: y - scaled_modified_bessel_k1(x))
def scaled_modified_bessel_k0(x: Tensor) -> Tensor:
    """Computes exp(x) * modified_bessel_k0(x), elementwise, without underflow."""
    small = x.clamp(max=2)
    far = scaled_far(x.clamp(min=2), table.K0_FAR)
    return of_positive(x, small.exp() * k0_near(small), far, 2, inf)


@elementwise(lambda x, y: y - scaled_modified_bessel_k0(x) - y / x)
def scaled_modified_bessel_k1(x: Tensor) -> Tensor:
    """Computes exp(x) * modified_bessel_k1(x), elementwise, without underflow."""
    small = x.clamp(max=2)
    far = scaled_far(x.clamp(min=2), table.K1_FAR)
    return of_positive(x, small.exp() * k1_near(small), far, 2, inf)


@elementwise(lambda x, y: divided(x.cos() - y, x, 0))
def spherical_bessel_j0(x: Tensor) -> Tensor:
    """Computes sin(x) / x, elementwise: 1 at 0, 0 at infinity."""
    return divided(x.masked_fill(x.isinf(), 0).sin(), x, 1)


@elementwise()
def airy_ai(x: Tensor) -> Tensor:
    """Computes the Airy function Ai, elementwise. It has no gradient."""
    left, right = (-x).clamp(min=2.09), x.clamp(min=2.09)
    t = 2 / 3 * left * left.sqrt()
    w = 1 / t
    steady = 1 + w * w * quotient(w * w, table.AIRY_SIN)
    changing = w * quotient(w * w, table.AIRY_COS)
    angle = t + pi / 4
    waves = (angle.sin() * steady - angle.cos() * changing) / (sqrt(pi) * left.sqrt().sqrt())
    zeta = 2 / 3 * right * right.sqrt()
    decay = quotient(1 / zeta, table.AIRY_RIGHT) * (-zeta).exp() / (2 * sqrt(pi))
    decay = decay / right.sqrt().sqrt()
    near = airy_near(x.clamp(-2.09, 2.09))
    return ops.where(x < -2.09, waves, ops.where(x >= 2.09, decay, near)).masked_fill(
        x == -inf, nan
    )


def airy_near(x: Tensor) -> Tensor:
    """Returns Ai by its Taylor series: two sequences of terms in x^3."""
    z = x**3
    f = m = ops.ones_like(x)
    g = n = x
    for k in range(1, 17):
        m = m * z / ((3 * k - 1) * (3 * k))
        n = n * z / ((3 * k) * (3 * k + 1))
        f, g = f + m, g + n
    return 0.355028053887817239260 * f - 0.258819403792806798405 * g
