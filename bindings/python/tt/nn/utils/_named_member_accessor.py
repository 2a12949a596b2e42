"""Replacement of a module's tensors, under the name of PyTorch's module."""
from __future__ import annotations

from typing import Any

from ..module import Module

__all__ = ["swap_tensor"]
MISSING = object()


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Puts a tensor in place of a parameter, buffer or attribute. Returns the earlier one.

    allow_missing: the module may have nothing of this name. What was or is missing is an object
    that stands for it, so a second call undoes the first.
    """
    held: Any
    for held in (module._parameters, module._buffers):
        if name in held:
            before = held[name]
            if tensor is MISSING:
                del held[name]
            else:
                held[name] = tensor
            return before
    before = getattr(module, name, MISSING)
    if before is MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute {name}")
    if tensor is not MISSING:
        setattr(module, name, tensor)
    elif before is not MISSING:
        delattr(module, name)
    return before
