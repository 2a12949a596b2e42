"""Creates a C module with the parameters and buffers of a Python module, under the same names."""
from __future__ import annotations

from ctypes import byref

from ..._lib import call
from ..layer import ModuleHandle
from ..module import Module


def tree_of(module: Module) -> ModuleHandle:
    """Returns the C module. A module with several parents stays a single module."""
    handles: dict[Module, ModuleHandle] = {}
    for part in reversed(list(module.modules())):
        handles[part] = made_from(part)
    for part, handle in handles.items():
        for name, child in part.named_children():
            call("tt_module_register_module", handle, name.encode(), handles[child])
    return handles[module]


def made_from(module: Module) -> ModuleHandle:
    """Returns a C container with the tensors of a module, without its children."""
    handle = ModuleHandle.__new__(ModuleHandle)
    call("tt_nn_module_dict", byref(handle))
    for name, p in module.named_parameters(recurse=False):
        call("tt_module_register_parameter", handle, name.encode(), p)
    for name, b in module.named_buffers(recurse=False):
        call("tt_module_register_buffer", handle, name.encode(), b, 1)
    return handle
