"""Variable, the former class of tensors that require gradients."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor


class OfTensors(type):
    """The metaclass of Variable: all tensors are Variables."""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor)


class Variable(metaclass=OfTensors):
    """Variable(data) is a tensor that shares the memory of data, without its history."""

    def __new__(
        cls, data: Tensor, requires_grad: bool = False, volatile: bool | None = None
    ) -> Any:
        """volatile is ignored, as in PyTorch since 0.4."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
