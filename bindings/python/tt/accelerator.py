"""The accelerator of this machine, CUDA or none, with the API of torch.accelerator."""
from __future__ import annotations

from typing import Any

from . import cuda
from ._types import device as device_class

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]
device_count = cuda.device_count
is_available = cuda.is_available
synchronize = cuda.synchronize
empty_cache = cuda.empty_cache
current_device_index = current_device_idx = cuda.current_device
set_device_index = set_device_idx = cuda.set_device
current_stream, set_stream = cuda.current_stream, cuda.set_stream
device_index = cuda.device
get_memory_info = cuda.mem_get_info
memory_allocated, memory_reserved = cuda.memory_allocated, cuda.memory_reserved
max_memory_allocated, max_memory_reserved = cuda.max_memory_allocated, cuda.max_memory_reserved
memory_stats, reset_peak_memory_stats = cuda.memory_stats, cuda.reset_peak_memory_stats


def current_accelerator(check_available: bool = False) -> Any:
    """Returns the accelerator's device type: "cuda", or None without a device.

    check_available is accepted: tt returns only available accelerators.
    """
    return device_class("cuda") if is_available() else None


def __dir__() -> list[str]:
    return __all__
