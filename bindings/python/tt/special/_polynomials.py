"""Orthogonal polynomials, which operator `orthogonal_polynomial` computes.

They are computed in float64 and rounded once, so that float32 is closer than PyTorch's.
"""
from __future__ import annotations

from math import nan
from typing import Any

from .. import _ops as ops
from .._convert import written
from .._create import tensor
from .._interception import overridable
from .._tensor import Tensor
from .._dtype_names import bool as boolean
from .._types import float32, float64
from ._functions import float_dtype, operator

POLYNOMIALS = (  # in the order of operator `orthogonal_polynomial`
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
)
SHIFTED = "shifted_"  # of 2 x - 1


def constant(x: Tensor, value: float) -> Tensor:
    """Returns value for each element of x, with the gradient 0."""
    return x.masked_fill(ops.ones_like(x, dtype=boolean), value)


def of_order(which: int, x: Tensor, n: float, limit: float) -> Tensor:
    """Returns p(n) at x: 0 for n of -1 and less, and n that is not finite, nan beyond the limit."""
    if not -1 < n < 2**63:
        return constant(x, 0)
    if n > limit:
        return constant(x, nan)
    result: Tensor = operator("orthogonal_polynomial")(x, which, int(n))
    return result


def evaluated(name: str, input: Any, n: Any, out: Tensor | None, limited: bool = False) -> Tensor:
    """Returns p(n) at input, broadcast.

    limited: results are nan beyond the largest n of PyTorch, 128 for float32 and 512 for float64.
    """
    which = POLYNOMIALS.index(name.removeprefix(SHIFTED)) + len(POLYNOMIALS) * name.startswith(
        SHIFTED
    )
    dtype = float_dtype(name, input, n)
    limit = {float32: 128, float64: 512}.get(dtype, 1024) if limited else 2**63
    x = input if isinstance(input, Tensor) else tensor(float(input), dtype=dtype, device=n.device)
    x = x.to(dtype)
    if not isinstance(n, Tensor):
        result = of_order(which, x, float(n), limit)
    else:
        order = n.detach().to(float64).trunc()
        x, order = ops.broadcast_tensors(x, order)
        result = constant(x, 0)
        for k in order.unique().tolist():
            result = ops.where(order == k, of_order(which, x, k, limit), result)
    return result if out is None else written(result, out, name)


@overridable
def chebyshev_polynomial_t(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Chebyshev polynomial of the first kind T_n(x), elementwise."""
    return evaluated("chebyshev_polynomial_t", input, n, out)


@overridable
def chebyshev_polynomial_u(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Chebyshev polynomial of the second kind U_n(x), elementwise."""
    return evaluated("chebyshev_polynomial_u", input, n, out)


@overridable
def chebyshev_polynomial_v(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Chebyshev polynomial of the third kind V_n(x), elementwise."""
    return evaluated("chebyshev_polynomial_v", input, n, out)


@overridable
def chebyshev_polynomial_w(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Chebyshev polynomial of the fourth kind W_n(x), elementwise."""
    return evaluated("chebyshev_polynomial_w", input, n, out)


@overridable
def shifted_chebyshev_polynomial_t(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes T_n(2 x - 1), elementwise."""
    return evaluated("shifted_chebyshev_polynomial_t", input, n, out)


@overridable
def shifted_chebyshev_polynomial_u(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes U_n(2 x - 1), elementwise."""
    return evaluated("shifted_chebyshev_polynomial_u", input, n, out)


@overridable
def shifted_chebyshev_polynomial_v(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes V_n(2 x - 1), elementwise."""
    return evaluated("shifted_chebyshev_polynomial_v", input, n, out)


@overridable
def shifted_chebyshev_polynomial_w(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes W_n(2 x - 1), elementwise."""
    return evaluated("shifted_chebyshev_polynomial_w", input, n, out)


@overridable
def hermite_polynomial_h(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Hermite polynomial of physics H_n(x), elementwise."""
    return evaluated("hermite_polynomial_h", input, n, out, limited=True)


@overridable
def hermite_polynomial_he(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Hermite polynomial of probability He_n(x), elementwise."""
    return evaluated("hermite_polynomial_he", input, n, out, limited=True)


@overridable
def laguerre_polynomial_l(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Laguerre polynomial L_n(x), elementwise."""
    return evaluated("laguerre_polynomial_l", input, n, out)


@overridable
def legendre_polynomial_p(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Legendre polynomial P_n(x), elementwise."""
    return evaluated("legendre_polynomial_p", input, n, out)
