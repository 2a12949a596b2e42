"""Calls of modules with other parameters and buffers: torch.nn.utils.stateless."""
from __future__ import annotations

from typing import Any, Mapping

from ..._tensor import Tensor
from ..layer import functional_tensors
from ..module import Module

# What modules of other libraries that replace parameters for a block import
_reparametrize_module = functional_tensors
__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other tensors in place of parameters and buffers. The module is unchanged
    afterwards.

    parameters_and_buffers: by dotted names; the others are the module's own.
    args, kwargs: arguments of the call; args is a tuple, or the only one.
    tie_weights: replaces a tensor with several names under all of them.
    strict: the names must be exactly those of the module.
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with functional_tensors(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
