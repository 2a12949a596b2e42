"""Module, under the name of PyTorch's module, and hooks of all modules."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable

from ..module import GlobalHook, IncompatibleKeys, Module, RemovableHandle, hook_handle
from ..module import registration_hooks

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
_IncompatibleKeys = IncompatibleKeys
# Packages call the hooks of these, too
_global_buffer_registration_hooks: OrderedDict[int, Any] = registration_hooks["buffer"]
_global_module_registration_hooks: OrderedDict[int, Any] = registration_hooks["module"]
_global_parameter_registration_hooks: OrderedDict[int, Any] = registration_hooks["parameter"]
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


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, name, buffer) before any module registers a buffer. A result other than
    None is registered instead. Returns a handle whose remove() unregisters the hook."""
    return hook_handle(registration_hooks["buffer"], hook, False, [])


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, name, submodule) before any module registers a child. A result other than
    None is registered instead. Returns a handle whose remove() unregisters the hook."""
    return hook_handle(registration_hooks["module"], hook, False, [])


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(module, name, param) before any module registers a parameter. A result other than
    None is registered instead. Returns a handle whose remove() unregisters the hook."""
    return hook_handle(registration_hooks["parameter"], hook, False, [])
