"""Elementwise functions of the array API standard."""
from __future__ import annotations

from typing import Any, Callable

from .. import _ops as ops
from .._convert import instance
from .._tensor import Tensor
from ._dtypes import promoted


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


abs = unary(ops.abs, "abs")
acos = unary(ops.acos, "acos")
acosh = unary(ops.acosh, "acosh")
asin = unary(ops.asin, "asin")
asinh = unary(ops.asinh, "asinh")
atan = unary(ops.atan, "atan")
atanh = unary(ops.atanh, "atanh")
bitwise_invert = unary(ops.bitwise_not, "bitwise_invert")
cos = unary(ops.cos, "cos")
cosh = unary(ops.cosh, "cosh")
exp = unary(ops.exp, "exp")
expm1 = unary(ops.expm1, "expm1")
isfinite = unary(ops.isfinite, "isfinite")
isinf = unary(ops.isinf, "isinf")
isnan = unary(ops.isnan, "isnan")
log = unary(ops.log, "log")
log1p = unary(ops.log1p, "log1p")
log2 = unary(ops.log2, "log2")
log10 = unary(ops.log10, "log10")
logical_not = unary(ops.logical_not, "logical_not")
negative = unary(ops.neg, "negative")
reciprocal = unary(ops.reciprocal, "reciprocal")
signbit = unary(ops.signbit, "signbit")
sin = unary(ops.sin, "sin")
sinh = unary(ops.sinh, "sinh")
square = unary(ops.square, "square")
sqrt = unary(ops.sqrt, "sqrt")
tan = unary(ops.tan, "tan")
tanh = unary(ops.tanh, "tanh")
ceil = unary(ops.ceil, "ceil", whole=True)
floor = unary(ops.floor, "floor", whole=True)
round = unary(ops.round, "round", whole=True)
trunc = unary(ops.trunc, "trunc", whole=True)
add = binary(ops.add, "add")
atan2 = binary(ops.atan2, "atan2")
bitwise_and = binary(ops.bitwise_and, "bitwise_and")
bitwise_left_shift = binary(ops.bitwise_left_shift, "bitwise_left_shift")
bitwise_or = binary(ops.bitwise_or, "bitwise_or")
bitwise_right_shift = binary(ops.bitwise_right_shift, "bitwise_right_shift")
bitwise_xor = binary(ops.bitwise_xor, "bitwise_xor")
copysign = binary(ops.copysign, "copysign")
divide = binary(ops.div, "divide")
equal = binary(ops.eq, "equal")
floor_divide = binary(ops.floor_divide, "floor_divide")
greater = binary(ops.gt, "greater")
greater_equal = binary(ops.ge, "greater_equal")
hypot = binary(ops.hypot, "hypot")
less = binary(ops.lt, "less")
less_equal = binary(ops.le, "less_equal")
logaddexp = binary(ops.logaddexp, "logaddexp")
logical_and = binary(ops.logical_and, "logical_and")
logical_or = binary(ops.logical_or, "logical_or")
logical_xor = binary(ops.logical_xor, "logical_xor")
maximum = binary(ops.maximum, "maximum")
minimum = binary(ops.minimum, "minimum")
multiply = binary(ops.mul, "multiply")
nextafter = binary(ops.nextafter, "nextafter")
not_equal = binary(ops.ne, "not_equal")
pow = binary(ops.pow, "pow")
remainder = binary(ops.remainder, "remainder")
subtract = binary(ops.sub, "subtract")


def sign(x: Tensor, /) -> Tensor:
    """Returns the sign of each element; of a complex one x / |x|. nan remains nan."""
    if x.dtype.is_complex:
        return ops.sgn(x)
    signs = ops.sign(x)
    return ops.where(ops.isnan(x), x, signs) if x.is_floating_point() else signs


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
    """Limits the elements to [min, max]. The dtype is that of x."""
    instance(Tensor, x, "clip", "x")
    for name, bound in (("min", min), ("max", max)):
        if isinstance(bound, (float, complex)) and x.dtype.kind == "i":
            raise TypeError(f"clip: {name} is {bound}: must be an integer as x, {x.dtype}")
    clipped = x.clone() if min is None and max is None else x
    if min is not None:
        clipped = ops.maximum(clipped, bound_like(min, x))
    if max is not None:
        clipped = ops.minimum(clipped, bound_like(max, x))
    return clipped.to(x.dtype)


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


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]
