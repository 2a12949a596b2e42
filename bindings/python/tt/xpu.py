"""torch.xpu. tt supports no Intel devices."""
from __future__ import annotations

from typing import Any

from ._absent_device import device_count as device_count
from ._absent_device import is_available as is_available
from ._absent_device import refusing_function
from ._absent_device import synchronize as synchronize

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


def get_rng_state_all() -> list[Any]:
    """Returns an empty list."""
    return []


def memory_stats(device: object = None) -> dict[str, Any]:
    """Returns an empty dict."""
    return {}


manual_seed = empty_cache = synchronize
manual_seed_all = seed = seed_all = reset_peak_memory_stats = synchronize
reset_accumulated_memory_stats = set_rng_state_all = synchronize
max_memory_allocated = max_memory_reserved = memory_allocated = memory_reserved = device_count
is_bf16_supported = is_current_stream_capturing = is_initialized = is_tf32_supported = is_available
current_device = refusing_function("xpu", "current_device")
current_stream = refusing_function("xpu", "current_stream")
get_device_capability = refusing_function("xpu", "get_device_capability")
get_device_name = refusing_function("xpu", "get_device_name")
get_device_properties = refusing_function("xpu", "get_device_properties")
get_rng_state = refusing_function("xpu", "get_rng_state")
init = refusing_function("xpu", "init")
mem_get_info = refusing_function("xpu", "mem_get_info")
set_device = refusing_function("xpu", "set_device")
set_rng_state = refusing_function("xpu", "set_rng_state")
set_stream = refusing_function("xpu", "set_stream")
Event = refusing_function("xpu", "Event")
Stream = refusing_function("xpu", "Stream")
device = refusing_function("xpu", "device")
stream = refusing_function("xpu", "stream")


def __dir__() -> list[str]:
    return __all__
