"""Names of torch._C that programs touch: those of __torch_function__, and questions about modes
that tt does not have."""
from __future__ import annotations

from contextlib import nullcontext
from enum import Enum
from types import SimpleNamespace
from typing import Any

from .._absent import absent_class
from .._interception import DisableTorchFunction as DisableTorchFunction
from .._interception import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .._interception import disabled_torch_function as _disabled_torch_function_impl
from .._settings import get_default_device
from .._tensor import Tensor as _TensorBase
from .._tensor import to_arguments
from .._types import device as device_class
from .._types import preserve_format
from .._types import device
from ..overrides import _is_torch_function_mode_enabled
from ..overrides import _len_torch_function_stack
from ..overrides import has_torch_function as _has_torch_function
from ..random import Generator as Generator

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Generator",
    "_TensorBase",
    "_disabled_torch_function_impl",
    "_has_torch_function",
    "_is_torch_function_mode_enabled",
    "_len_torch_function_stack",
]
_TensorMeta = type(_TensorBase)
NO_GRAPH = "a call is recorded by tt.jit.trace or tt.fx, which have graphs of their own"
Graph = absent_class("_C.Graph", NO_GRAPH)
ScriptMethod = absent_class("_C.ScriptMethod", NO_GRAPH)
TensorType = absent_class("_C.TensorType", NO_GRAPH)
Node = absent_class("_C.Node", NO_GRAPH)
Value = absent_class("_C.Value", NO_GRAPH)


def _get_tracing_state() -> None:
    """Returns None: calls are traced by running them."""


def _is_tracing() -> bool:
    """Returns False: calls are traced by running them."""
    return False


def _are_functorch_transforms_active() -> bool:
    """Returns False."""
    return False


def _cuda_isInBadFork() -> bool:
    """Returns False."""
    return False


def _get_default_device() -> str:
    """Returns the default device's name."""
    return str(get_default_device())


def _get_accelerator(check: bool | None = None) -> device:
    """Returns the device type of the accelerator, or the CPU if there is none."""
    from ..accelerator import current_accelerator

    return current_accelerator(check_available=True) or device_class("cpu")


def _is_alias_of(self: _TensorBase, other: _TensorBase) -> bool:
    """Returns whether two tensors have the same memory."""
    mine, others = self.untyped_storage(), other.untyped_storage()
    return mine.nbytes() > 0 and mine.data_ptr() == others.data_ptr()


def _get_privateuse1_backend_name() -> str:
    """Returns "privateuseone"."""
    return "privateuseone"


def nothing(*args: Any) -> None:
    """Does nothing: tt has no such setting."""


_log_api_usage_once = _cuda_clearCublasWorkspaces = nothing
_set_math_sdp_allow_fp16_bf16_reduction = nothing
_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_set_texpr_fuser_enabled = nothing
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_nvfuser_enabled = nothing


class DispatchKey(Enum):
    """Keys of PyTorch's dispatcher. tt's operators have none of them."""

    AutocastCPU = "AutocastCPU"
    AutocastCUDA = "AutocastCUDA"
    AutocastXPU = "AutocastXPU"


class DispatchKeySet:
    """A set of keys."""

    def __init__(self, *keys: DispatchKey) -> None:
        self.keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)

    def has(self, key: DispatchKey) -> bool:
        """Returns whether key is in the set."""
        return key in self.keys


_ExcludeDispatchKeyGuard = nullcontext


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Returns (device, dtype, non_blocking, memory_format) of the arguments of Tensor.to."""
    dtype, device, _, memory_format = to_arguments(*args, **kwargs)
    given = None if memory_format is preserve_format else memory_format
    return device, dtype, bool(kwargs.get("non_blocking", False)), given


_nn = SimpleNamespace(_parse_to=_parse_to)
