"""Constants, what dtypes combine to, and whether tensors hold the same numbers."""
from math import e, inf, nan, pi  # noqa: F401  (names of tt)

from . import _ops
from ._convert import instance
from ._tensor import Tensor
from .errors import InvalidArgumentError

newaxis = None


def result_type(tensor1, tensor2):
    """The dtype of an operator's result on these two; either may be a number."""
    kinds = [
        _ops.empty((0,) if x.ndim else (), dtype=x.dtype, device="meta")
        if isinstance(x, Tensor)
        else x
        for x in (tensor1, tensor2)
    ]
    if not any(isinstance(x, Tensor) for x in kinds):
        kinds = [_ops.full((), x) for x in kinds]
    return (kinds[0] * kinds[1]).dtype


def promote_types(type1, type2):
    """The dtype that holds what both hold."""
    return (
        _ops.empty((0,), dtype=type1, device="meta") * _ops.empty((0,), dtype=type2, device="meta")
    ).dtype


def can_cast(from_, to):
    """Whether a conversion keeps the kind of number: not from real to integer, complex to real, a signed one to uint8 or any to bool."""
    return "bifc".index(from_.kind) <= "bifc".index(to.kind) and not (
        from_.kind == to.kind == "i" and from_.is_signed and not to.is_signed
    )


def equal(input, other):
    """Have both the same shape and equal elements? (nan equals nothing)"""
    instance(Tensor, other, "equal", "other")
    return input.shape == other.shape and bool((input == other).all())


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements equal, or finite and |input - other| <= atol + rtol |other|?"""
    instance(Tensor, other, "allclose", "other")
    if input.dtype is not other.dtype or rtol < 0 or atol < 0:
        raise InvalidArgumentError(
            f"allclose: {input.dtype} and {other.dtype}, rtol {rtol}, atol {atol}: the dtypes must be equal, neither number negative"
        )
    close = input == other
    if equal_nan:
        close |= _ops.isnan(input) & _ops.isnan(other)
    if rtol or atol:
        a, b = (x if x.is_floating_point() or x.is_complex() else x.float() for x in (input, other))
        error = (a - b).abs()
        close |= _ops.isfinite(error) & (error <= atol + (rtol * b).abs())
    return bool(close.all())
