"""What the special functions of Python share: dtypes, out= and formulas of gradients."""
from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from .. import _ops as ops
from .._convert import written
from .._numbers import result_type
from .._settings import get_default_dtype
from .._tensor import Tensor
from .._types import float64
from ..autograd.function import Function

Formula = Callable[..., Tensor]


class Computed(Function):
    """A function of one tensor with a formula for its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, compute: Formula, slope: Formula | None) -> Tensor:
        result = compute(x)
        ctx.compute, ctx.slope = compute, slope
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if ctx.slope is None:
            raise NotImplementedError(f"{ctx.compute.__name__}: its derivative is not implemented")
        return grad * ctx.slope(*ctx.saved_tensors), None, None


def float_dtype(name: str, *values: Any) -> Any:
    """Returns the floating dtype of the results of a function of tensors and numbers."""
    tensors = [v for v in values if isinstance(v, Tensor)]
    if not tensors or not all(isinstance(v, (Tensor, int, float)) for v in values):
        kinds = ", ".join(type(v).__name__ for v in values)
        raise TypeError(f"{name}: takes tensors, or a tensor and numbers, not {kinds}")
    dtype = tensors[0].dtype if len(values) == 1 else result_type(*values)
    if dtype.is_complex:
        raise TypeError(f"{name}: {dtype} is not supported")
    return dtype if dtype.is_floating_point else get_default_dtype()


def elementwise(slope: Formula | None = None) -> Callable[[Formula], Formula]:
    """Makes a function of a float64 tensor one of any tensor: integers become the default dtype,
    and the result is computed in float64 and rounded once.

    slope: the derivative, a function of x and of the result.
    """

    def decorate(compute: Formula) -> Formula:
        @wraps(compute)
        def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
            dtype = float_dtype(compute.__name__, input)
            x = input.to(float64)
            y = Computed.apply(x, compute, slope) if x.requires_grad else compute(x)
            result: Tensor = y.to(dtype)
            return result if out is None else written(result, out, compute.__name__)

        return function

    return decorate


def polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Returns a polynomial in x, by Horner's rule: the coefficient of the highest power first."""
    value = ops.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        value = value * x + c
    return value


def quotient(x: Tensor, polynomials: tuple[tuple[float, ...], tuple[float, ...]]) -> Tensor:
    above, below = polynomials
    return polynomial(x, above) / polynomial(x, below)


def series(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Returns half of a Chebyshev series in x / 2, by Clenshaw's rule."""
    before = last = ops.zeros_like(x)
    value = ops.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        before, last = last, value
        value = x * last - before + c
    return (value - before) / 2
