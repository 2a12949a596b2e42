"""Bessel functions and the Airy function, which operator `bessel` computes."""
from __future__ import annotations

from .._convert import written
from .._tensor import Tensor
from .._types import float64
from ._functions import computed, float_dtype


def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Bessel function of the first kind of order 0, elementwise."""
    return computed("bessel_j0", input, out)


def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Bessel function of the first kind of order 1, elementwise."""
    return computed("bessel_j1", input, out)


def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Bessel function of the second kind of order 0, elementwise: nan below 0."""
    return computed("bessel_y0", input, out)


def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Bessel function of the second kind of order 1, elementwise: nan below 0."""
    return computed("bessel_y1", input, out)


def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the second kind of order 0, elementwise: nan below
    0."""
    return computed("modified_bessel_k0", input, out)


def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the second kind of order 1, elementwise: nan below
    0."""
    return computed("modified_bessel_k1", input, out)


def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes exp(x) * modified_bessel_k0(x), elementwise, without underflow."""
    return computed("scaled_modified_bessel_k0", input, out)


def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes exp(x) * modified_bessel_k1(x), elementwise, without underflow."""
    return computed("scaled_modified_bessel_k1", input, out)


def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Airy function Ai, elementwise. It has no gradient."""
    return computed("airy_ai", input, out)


def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes sin(x) / x, elementwise: 1 at 0, 0 at infinity."""
    dtype = float_dtype("spherical_bessel_j0", input)
    x = input.to(float64)
    is_zero = x == 0
    quotient = x.masked_fill(x.isinf(), 0).sin() / x.masked_fill(is_zero, 1)
    result: Tensor = quotient.masked_fill(is_zero, 1).to(dtype)
    return result if out is None else written(result, out, "spherical_bessel_j0")
