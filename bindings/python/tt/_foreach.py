"""PyTorch's torch._foreach_* functions: an operator applied to each tensor of lists."""
from __future__ import annotations

from typing import Any, Callable

from . import _ops as ops
from ._tensor import Tensor
from .errors import InvalidArgumentError

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
# name -> the operator; the second argument is a number, a list of numbers, a tensor or a list of
# tensors
BINARY = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "pow": "pow",
    "maximum": "clamp_min",
    "minimum": "clamp_max",
    "clamp_min": "clamp_min",
    "clamp_max": "clamp_max",
}
TERNARY = ("addcdiv", "addcmul", "lerp")


def each(name: str, n: int, value: Any, what: str) -> Any:
    """Returns one value per tensor: the items of a list, a 1-D tensor's numbers, or copies."""
    if isinstance(value, (list, tuple)):
        if len(value) != n:
            raise InvalidArgumentError(
                f"{name}: self has {n} tensors, {what} has {len(value)} items: must be equal"
            )
        return value
    return [value] * n


def per_tensor(name: str, n: int, value: Any, what: str) -> Any:
    """Like each(), but a 1-D tensor is a list of numbers."""
    if isinstance(value, Tensor) and value.ndim == 1:
        return each(name, n, value.tolist(), what)
    return each(name, n, value, what)


def unary(operator: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any) -> list[Tensor]:
        return [operator(x) for x in self]

    return call


def binary(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, other: Any, *, alpha: Any = 1) -> list[Tensor]:
        others = each(name, len(self), other, "other")
        if alpha == 1:
            return [operator(x, y) for x, y in zip(self, others)]
        return [operator(x, y, alpha=alpha) for x, y in zip(self, others)]

    return call


def reversed_pow(name: str, call: Callable[..., Any], power: Callable[..., Any]) -> Any:
    """_foreach_pow, whose first argument may be a number."""

    def either(self: Any, exponent: Any) -> list[Tensor]:
        if isinstance(self, (list, tuple)):
            powers: list[Tensor] = call(self, exponent)
            return powers
        return [power(self, x) for x in exponent]

    return either


def ternary(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> list[Tensor]:
        n = len(self)
        rows = zip(
            self,
            each(name, n, tensor1, "tensor1"),
            each(name, n, tensor2, "tensor2"),
            per_tensor(name, n, value, "value"),
        )
        return [operator(x, a, b, value=v) for x, a, b, v in rows]

    return call


def lerp(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, tensors1: Any, weight: Any) -> list[Tensor]:
        n = len(self)
        rows = zip(self, each(name, n, tensors1, "tensors1"), each(name, n, weight, "weight"))
        return [operator(x, y, w) for x, y, w in rows]

    return call


def copy_(self: Any, src: Any, non_blocking: bool = False) -> list[Tensor]:
    return [x.copy_(y) for x, y in zip(self, each("_foreach_copy_", len(self), src, "src"))]


def zero_(self: Any) -> list[Tensor]:
    return [x.zero_() for x in self]


def clone(self: Any, *, memory_format: Any = None) -> list[Tensor]:
    options = {} if memory_format is None else {"memory_format": memory_format}
    return [x.clone(**options) for x in self]


def mm(self: Any, mat2: Any) -> list[Tensor]:
    return [x @ y for x, y in zip(self, each("_foreach_mm", len(self), mat2, "mat2"))]


def powsum(self: Any, ord: float = 2, dtype: Any = None) -> list[Tensor]:
    return [(x.to(dtype) if dtype else x).abs().pow(ord).sum() for x in self]


def largest(self: Any) -> list[Tensor]:
    return [x.max() for x in self]


def norm(self: Any, ord: float = 2, dtype: Any = None) -> list[Tensor]:
    vector_norm = ops.find("tt", "linalg_vector_norm")
    return [vector_norm(x, ord, dtype=dtype) for x in self]


OTHERS: dict[str, Callable[..., Any]] = {
    "clone": clone,
    "copy_": copy_,
    "max": largest,
    "mm": mm,
    "norm": norm,
    "powsum": powsum,
    "zero_": zero_,
}


def make(name: str) -> Callable[..., Any] | None:
    """Returns the function _foreach_NAME, or None if there is none."""
    if name in OTHERS:
        return OTHERS[name]
    base = name[:-1] if name.endswith("_") else name
    operator = BINARY.get(base, base)
    if base not in UNARY and base not in BINARY and base not in TERNARY:
        return None
    if name.endswith("_"):
        function = getattr(Tensor, operator + "_")
    else:
        function = ops.find("tt", operator)
    full = "_foreach_" + name
    if base in UNARY:
        foreach = unary(function)
    elif base == "lerp":
        foreach = lerp(full, function)
    elif base in TERNARY:
        foreach = ternary(full, function)
    else:
        foreach = binary(full, function)
    return reversed_pow(full, foreach, function) if name == "pow" else foreach
