"""Elementwise functions of the array API standard."""
from __future__ import annotations

from .. import _ops as ops
from .._convert import instance
from .._tensor import Tensor
from ._dtypes import promoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def unary(function: Callable[..., Any], name: str, whole: bool = False) -> Any:
    """Returns the standard's function of one array. whole: integers are returned as they are."""

    def of_array(x: Tensor, /) -> Tensor:
        instance(Tensor, x, name, "x")
        if whole and x.dtype.kind in "bi":
            return x.clone()
        return function(x)

    of_array.__name__ = of_array.__qualname__ = name
    of_array.__doc__ = f"Returns {name} of each element."
    return of_array


def binary(function: Callable[..., Any], name: str) -> Any:
    """Returns the standard's function of two arrays, one of which may be a Python number."""

    def of_arrays(x1: Any, x2: Any, /) -> Tensor:
        return function(*promoted(x1, x2))

    of_arrays.__name__ = of_arrays.__qualname__ = name
    of_arrays.__doc__ = f"Returns {name} of the elements of both arrays."
    return of_arrays


UNARY = {
    "abs": "abs",
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "bitwise_invert": "bitwise_not",
    "cos": "cos",
    "cosh": "cosh",
    "exp": "exp",
    "expm1": "expm1",
    "isfinite": "isfinite",
    "isinf": "isinf",
    "isnan": "isnan",
    "log": "log",
    "log1p": "log1p",
    "log2": "log2",
    "log10": "log10",
    "logical_not": "logical_not",
    "negative": "neg",
    "reciprocal": "reciprocal",
    "signbit": "signbit",
    "sin": "sin",
    "sinh": "sinh",
    "square": "square",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
WHOLE = {"ceil": "ceil", "floor": "floor", "round": "round", "trunc": "trunc"}
BINARY = {
    "add": "add",
    "atan2": "atan2",
    "bitwise_and": "bitwise_and",
    "bitwise_left_shift": "bitwise_left_shift",
    "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "bitwise_right_shift",
    "bitwise_xor": "bitwise_xor",
    "copysign": "copysign",
    "divide": "div",
    "equal": "eq",
    "floor_divide": "floor_divide",
    "greater": "gt",
    "greater_equal": "ge",
    "hypot": "hypot",
    "less": "lt",
    "less_equal": "le",
    "logaddexp": "logaddexp",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "mul",
    "nextafter": "nextafter",
    "not_equal": "ne",
    "pow": "pow",
    "remainder": "remainder",
    "subtract": "sub",
}


def sign(x: Tensor, /) -> Tensor:
    """Returns the sign of each element; of a complex one x / |x|. nan remains nan."""
    if x.dtype.is_complex:
        return ops.sgn(x)
    found = ops.sign(x)
    return ops.where(ops.isnan(x), x, found) if x.is_floating_point() else found


def positive(x: Tensor, /) -> Tensor:
    """Returns a copy."""
    return instance(Tensor, x, "positive", "x").clone()


def conj(x: Tensor, /) -> Tensor:
    """Returns the complex conjugate of each element."""
    return ops.conj(x) if x.dtype.is_complex else x


def real(x: Tensor, /) -> Tensor:
    """Returns the real part of each element."""
    return x.real


def imag(x: Tensor, /) -> Tensor:
    """Returns the imaginary part of each element."""
    return x.imag if x.dtype.is_complex else ops.zeros_like(x)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Returns each element, but at least min and at most max. The dtype is that of x."""
    instance(Tensor, x, "clip", "x")
    for name, bound in (("min", min), ("max", max)):
        if isinstance(bound, (float, complex)) and x.dtype.kind == "i":
            raise TypeError(f"clip: {name} is {bound}: must be an integer as x, {x.dtype}")
    found = x.clone() if min is None and max is None else x
    if min is not None:
        found = ops.maximum(found, bound_like(min, x))
    if max is not None:
        found = ops.minimum(found, bound_like(max, x))
    return found.to(x.dtype)


def bound_like(bound: Any, x: Tensor) -> Tensor:
    """Returns a bound of clip in the dtype of x; an integer beyond it becomes the nearest one."""
    from .._create import scalar_tensor
    from .._limits import iinfo

    if isinstance(bound, Tensor):
        return bound.to(x.dtype)
    if x.dtype.kind == "i":
        limits = iinfo(x.dtype)
        bound = sorted((limits.min, int(bound), limits.max))[1]
    return scalar_tensor(bound, dtype=x.dtype, device=x.device)


globals().update((name, unary(getattr(ops, own), name)) for name, own in UNARY.items())
globals().update((name, unary(getattr(ops, own), name, True)) for name, own in WHOLE.items())
globals().update((name, binary(getattr(ops, own), name)) for name, own in BINARY.items())
__all__ = [*UNARY, *WHOLE, *BINARY, "clip", "conj", "imag", "positive", "real", "sign"]
