"""Operators by namespace and name, with the API of torch.ops: ops.aten has those of tt, other
namespaces those of tt.library.custom_op and tt.library.define."""
from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import Any, Callable

from ._absent import absent_function
from ._tensor import Tensor

__all__ = ["OpOverloadPacket", "load_library"]


class OpOverloadPacket:
    """An operator. Its overloads, as `.default` and `.Tensor`, are attributes, each of which is
    called with any of the operator's arguments."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name, self._function = name, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> Any:
        if overload.startswith("__"):
            raise AttributeError(f"{self._name} has no attribute {overload!r}")
        named = OpOverloadPacket(f"{self._name}.{overload}", self._function)
        self.__dict__[overload] = named  # each time the same object, which programs compare
        return named

    def name(self) -> str:
        return self._name

    def overloads(self) -> list[str]:
        """Returns ["default"]: one function takes the arguments of all overloads."""
        return ["default"]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._name.replace('::', '.')}')>"


# What PyTorch's functions call, for which tt has no function: programs name these as keys of tables
KERNELS = frozenset(
    "_assert_scalar _assert_tensor_metadata _conj _convolution _embedding_bag _fft_c2c "
    "_is_all_true _local_scalar_dense _pin_memory _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_cudnn_attention_backward _scaled_dot_product_flash_attention "
    "_scaled_dot_product_flash_attention_backward _sparse_addmm _sparse_mm_reduce_impl _to_copy "
    "_unsafe_view _upsample_bilinear2d_aa alias convolution empty_permuted index slice slice_copy "
    "sym_constrain_range_for_size sym_size".split()
)


def of_aten(name: str) -> Any:
    """Returns the function of tt, of its nn.functional, or the method of Tensor with this name, or
    None."""
    for place in ("tt", "tt.nn.functional"):
        found = getattr(import_module(place), name, None)
        if callable(found) and not isinstance(found, type):
            return found
    if name in KERNELS:
        return absent_function(f"ops.aten.{name}", "tt has no function of this name")
    return getattr(Tensor, name, None)


def of_library(namespace: str, name: str) -> Any:
    """Returns the custom operator, or None."""
    from .library import definitions

    return definitions.get(f"{namespace}::{name}")


class OpNamespace:
    """The operators of a namespace as attributes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, op: str) -> OpOverloadPacket:
        find: Any = of_aten if self.name in ("aten", "prims") else partial(of_library, self.name)
        function = None if op.startswith("__") else find(op)
        if function is None:
            raise AttributeError(f"ops.{self.name} has no operator {op!r}")
        self.__dict__[op] = packet = OpOverloadPacket(f"{self.name}::{op}", function)
        return packet

    def __repr__(self) -> str:
        return f"<OpNamespace({self.name})>"


def load_library(path: str) -> None:
    """Raises OSError: libraries of PyTorch's operators need PyTorch's own C++."""
    raise OSError(f"ops.load_library: path is {path!r}: tt does not load PyTorch's C++ libraries")


def __getattr__(name: str) -> OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    namespace = OpNamespace(name)
    setattr(sys.modules[__name__], name, namespace)
    return namespace


def __dir__() -> list[str]:
    return __all__
