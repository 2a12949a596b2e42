"""Parameter and Buffer: tensors that a module registers when they are assigned to an attribute."""
from __future__ import annotations

from typing import Any

from .. import _ops
from .._hints import Self
from .._interception import disabled_torch_function
from .._tensor import Tensor


class Parameter(Tensor, plain_results=True):
    """A tensor that a module registers as its parameter. It shares the memory of data.

    data: any tensor; its history is dropped. None: an empty tensor.
    requires_grad: data must be floating or complex for True.
    """

    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = _ops.empty(0)
        if not hasattr(data, "detach"):
            raise TypeError(f"Parameter(): data must be a Tensor, not {type(data).__name__}")
        return data.detach().as_subclass(cls).requires_grad_(requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The copy has no gradient."""
        clone = super().__deepcopy__(memo)
        clone.grad = None
        return clone

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor, plain_results=True):
    """A tensor that a module registers as its buffer. It shares the memory of data.

    data: any tensor; its history is dropped. None: an empty tensor.
    persistent: state_dict() contains it.
    """

    persistent: bool

    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        if data is None:
            data = _ops.empty(0)
        buffer = data.detach().as_subclass(cls)
        buffer.persistent = persistent
        return buffer


def is_lazy(param: Any) -> bool:
    """Returns whether a tensor is an UninitializedParameter or an UninitializedBuffer."""
    from .lazy import Uninitialized

    return isinstance(param, Uninitialized)


def __getattr__(name: str) -> Any:
    """Finds the tensors of lazy modules, which PyTorch has here."""
    if name not in ("UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import lazy

    return lazy.Uninitialized if name == "UninitializedTensorMixin" else getattr(lazy, name)


_ParameterMeta = type(Parameter)  # PyTorch's name of the class of Parameter
