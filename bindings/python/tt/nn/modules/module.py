"""Module, under the name of PyTorch's module, and hooks of all modules."""
from __future__ import annotations

from types import MappingProxyType
from typing import Any, Callable, Mapping

from ..module import GlobalHook, IncompatibleKeys, Module

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
]
_IncompatibleKeys = IncompatibleKeys
# What packages call for each new parameter. tt has no such hooks.
_global_parameter_registration_hooks: Mapping[int, Any] = MappingProxyType({})
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> GlobalHook:
    """Calls hook(module, args) before forward of every module, as register_forward_pre_hook does.
    Returns a handle whose remove() unregisters it."""
    return GlobalHook("_forward_pre_hooks", hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> GlobalHook:
    """Calls hook(module, args, output) after forward of every module, as register_forward_hook
    does. Returns a handle whose remove() unregisters it."""
    return GlobalHook("_forward_hooks", hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> GlobalHook:
    """Calls hook(module, grad_output) in backward of every module, as
    register_full_backward_pre_hook does. Returns a handle whose remove() unregisters it."""
    return GlobalHook("_backward_pre_hooks", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> GlobalHook:
    """Calls hook(module, grad_input, grad_output) in backward of every module, as
    register_full_backward_hook does. Returns a handle whose remove() unregisters it."""
    return GlobalHook("_backward_hooks", hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> GlobalHook:
    """Calls register_module_full_backward_hook. Deprecated."""
    return register_module_full_backward_hook(hook)
