"""Constants, type promotion, and comparison of whole tensors."""
from __future__ import annotations

from ctypes import byref, c_int32
from math import e, inf, nan, pi

from . import _ops
from ._convert import instance
from ._interception import overridable
from ._lib import call
from ._tensor import Tensor
from ._types import dtype
from .errors import InvalidArgumentError

__all__ = [
    "allclose",
    "can_cast",
    "e",
    "equal",
    "inf",
    "nan",
    "newaxis",
    "pi",
    "promote_types",
    "result_type",
]
newaxis = None


def result_type(tensor1: Tensor | complex, tensor2: Tensor | complex) -> dtype:
    """Returns the dtype of an arithmetic operator's result. Either operand may be a number."""
    operands = []
    for x in (tensor1, tensor2):
        if isinstance(x, Tensor):
            operands.append(_ops.empty((0,) if x.ndim else (), dtype=x.dtype, device="meta"))
        else:
            operands.append(x)
    if not any(isinstance(x, Tensor) for x in operands):
        operands = [_ops.full((), x) for x in operands]
    return (operands[0] * operands[1]).dtype


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Returns the smallest dtype that both dtypes can be converted to."""
    a, b = (_ops.empty((0,), dtype=type_, device="meta") for type_ in (type1, type2))
    return (a * b).dtype


def can_cast(from_: dtype, to: dtype) -> bool:
    """Returns whether a dtype may be converted to another one under promotion rules.

    False from complex to real, from floating to integer, and from numbers to bool.
    """
    return "bifc".index(from_.kind) <= "bifc".index(to.kind)


@overridable
def equal(input: Tensor, other: Tensor) -> bool:
    """Returns whether both have the same shape and equal elements. nan equals nothing."""
    instance(Tensor, other, "equal", "other")
    found = c_int32()
    call("tt_equal", input, other, byref(found))
    return bool(found.value)


@overridable
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Returns whether |input - other| <= atol + rtol * |other|, or equality, holds for all
    elements.

    equal_nan: nan equals nan. Raises InvalidArgumentError for different dtypes or a negative
        tolerance.
    """
    instance(Tensor, other, "allclose", "other")
    if input.dtype is not other.dtype or rtol < 0 or atol < 0:
        raise InvalidArgumentError(
            f"allclose: {input.dtype} and {other.dtype}, rtol {rtol}, atol {atol}: "
            "the dtypes must be equal, neither number negative"
        )
    close = input == other
    if equal_nan:
        close |= _ops.isnan(input) & _ops.isnan(other)
    if rtol or atol:
        inexact = input.is_floating_point() or input.is_complex()
        a, b = (input, other) if inexact else (input.float(), other.float())
        error = (a - b).abs()
        close |= _ops.isfinite(error) & (error <= atol + (rtol * b).abs())
    return bool(close.all())
