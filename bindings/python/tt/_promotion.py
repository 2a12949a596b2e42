"""Type promotion: the dtype that dtypes have in common."""
from __future__ import annotations

from . import _ops
from ._tensor import Tensor
from ._types import dtype

__all__ = ["can_cast", "promote_types", "result_type"]


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
