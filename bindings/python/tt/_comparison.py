"""Comparison of whole tensors."""
from __future__ import annotations

from ctypes import byref, c_int32

from . import _ops
from ._convert import instance
from ._interception import overridable
from ._lib import call
from ._tensor import Tensor
from .errors import InvalidArgumentError

__all__ = ["allclose", "equal"]


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
