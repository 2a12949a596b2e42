"""Orthogonal polynomials, by their recurrences: p(0), p(1) and from then on p(k) of the two before.

They are computed in float64 and rounded once, so that float32 is closer than PyTorch's.
"""
from __future__ import annotations

from math import inf, nan
from typing import Any, Callable

from .. import _ops as ops
from .._convert import written
from .._create import tensor
from .._interception import overridable
from .._tensor import Tensor
from .._types import float32, float64
from ._functions import float_dtype

Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]  # p(k) by k, x, p(k - 1), p(k - 2)


def as_float64(value: Any, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.to(float64)
    return tensor(float(value), dtype=float64, device=like.device)


def evaluated(
    name: str,
    input: Any,
    n: Any,
    out: Tensor | None,
    first: Callable[[Tensor], Tensor],
    step: Step,
    shifted: bool = False,
    limited: bool = False,
) -> Tensor:
    """Returns p(n) at input, broadcast. p(0) is 1, p(1) is first(x); n below 0 gives 0.

    shifted: evaluates at 2 * input - 1. limited: results are nan beyond the largest n of PyTorch,
    128 for float32 and 512 for float64.
    """
    dtype = float_dtype(name, input, n)
    like = input if isinstance(input, Tensor) else n
    x, order = as_float64(input, like), as_float64(n, like).detach()
    x, order = ops.broadcast_tensors(2 * x - 1 if shifted else x, order)
    order = order.trunc().nan_to_num(-1.0, -1.0, -1.0)
    highest = order.amax().item() if order.numel() else 0.0
    limit = inf
    if limited:
        limit = {float32: 128, float64: 512}.get(dtype, 1024)
    p, q = ops.ones_like(x), first(x)
    for k in range(2, int(min(highest, limit)) + 1):
        reached = order >= k  # a lower n keeps its result
        p, q = ops.where(reached, q, p), ops.where(reached, step(k, x, q, p), q)
    result = q.masked_fill(order == 0, 1).masked_fill(order < 0, 0)
    result = result.masked_fill(order > limit, nan).to(dtype)
    return result if out is None else written(result, out, name)


def chebyshev(k: int, x: Tensor, q: Tensor, p: Tensor) -> Tensor:
    return 2 * x * q - p


def hermite(k: int, x: Tensor, q: Tensor, p: Tensor) -> Tensor:
    return 2 * (x * q - (k - 1) * p)


def hermite_of_probability(k: int, x: Tensor, q: Tensor, p: Tensor) -> Tensor:
    return x * q - (k - 1) * p


def laguerre(k: int, x: Tensor, q: Tensor, p: Tensor) -> Tensor:
    return ((2 * k - 1 - x) * q - (k - 1) * p) / k


def legendre(k: int, x: Tensor, q: Tensor, p: Tensor) -> Tensor:
    return ((2 * k - 1) * x * q - (k - 1) * p) / k


@overridable
def chebyshev_polynomial_t(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Chebyshev polynomial of the first kind T_n(x), elementwise."""
    return evaluated("chebyshev_polynomial_t", input, n, out, lambda x: x, chebyshev)


@overridable
def chebyshev_polynomial_u(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Chebyshev polynomial of the second kind U_n(x), elementwise."""
    return evaluated("chebyshev_polynomial_u", input, n, out, lambda x: 2 * x, chebyshev)


@overridable
def chebyshev_polynomial_v(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Chebyshev polynomial of the third kind V_n(x), elementwise."""
    return evaluated("chebyshev_polynomial_v", input, n, out, lambda x: 2 * x - 1, chebyshev)


@overridable
def chebyshev_polynomial_w(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Chebyshev polynomial of the fourth kind W_n(x), elementwise."""
    return evaluated("chebyshev_polynomial_w", input, n, out, lambda x: 2 * x + 1, chebyshev)


@overridable
def shifted_chebyshev_polynomial_t(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes T_n(2 x - 1), elementwise."""
    return evaluated(
        "shifted_chebyshev_polynomial_t", input, n, out, lambda x: x, chebyshev, shifted=True
    )


@overridable
def shifted_chebyshev_polynomial_u(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes U_n(2 x - 1), elementwise."""
    return evaluated(
        "shifted_chebyshev_polynomial_u", input, n, out, lambda x: 2 * x, chebyshev, shifted=True
    )


@overridable
def shifted_chebyshev_polynomial_v(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes V_n(2 x - 1), elementwise."""
    return evaluated(
        "shifted_chebyshev_polynomial_v",
        input,
        n,
        out,
        lambda x: 2 * x - 1,
        chebyshev,
        shifted=True,
    )


@overridable
def shifted_chebyshev_polynomial_w(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes W_n(2 x - 1), elementwise."""
    return evaluated(
        "shifted_chebyshev_polynomial_w",
        input,
        n,
        out,
        lambda x: 2 * x + 1,
        chebyshev,
        shifted=True,
    )


@overridable
def hermite_polynomial_h(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Hermite polynomial of physics H_n(x), elementwise."""
    return evaluated("hermite_polynomial_h", input, n, out, lambda x: 2 * x, hermite, limited=True)


@overridable
def hermite_polynomial_he(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Hermite polynomial of probability He_n(x), elementwise."""
    return evaluated(
        "hermite_polynomial_he", input, n, out, lambda x: x, hermite_of_probability, limited=True
    )


@overridable
def laguerre_polynomial_l(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Laguerre polynomial L_n(x), elementwise."""
    return evaluated("laguerre_polynomial_l", input, n, out, lambda x: 1 - x, laguerre)


@overridable
def legendre_polynomial_p(
    input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None
) -> Tensor:
    """Computes the Legendre polynomial P_n(x), elementwise."""
    return evaluated("legendre_polynomial_p", input, n, out, lambda x: x, legendre)
