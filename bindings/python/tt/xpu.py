"""torch.xpu. tt supports no Intel devices."""
from __future__ import annotations

from typing import Any, NoReturn

from .errors import DeviceError

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


def is_available(*args: Any, **kwargs: Any) -> bool:
    """Returns False."""
    return False


def device_count(*args: Any, **kwargs: Any) -> int:
    """Returns 0."""
    return 0


def synchronize(*args: Any, **kwargs: Any) -> None:
    """Does nothing: there is no device."""


def get_rng_state_all() -> list[Any]:
    """Returns an empty list."""
    return []


def memory_stats(device: object = None) -> dict[str, Any]:
    """Returns an empty dict."""
    return {}


def _absent(function: str) -> Any:
    """Returns a function that raises DeviceError."""

    def raises(*args: Any, **kwargs: Any) -> NoReturn:
        raise DeviceError(f"xpu.{function}: there is no XPU device")

    raises.__name__ = function
    raises.__doc__ = "Raises DeviceError: there is no device."
    return raises


manual_seed = empty_cache = synchronize
manual_seed_all = seed = seed_all = reset_peak_memory_stats = synchronize
reset_accumulated_memory_stats = set_rng_state_all = synchronize
max_memory_allocated = max_memory_reserved = memory_allocated = memory_reserved = device_count
is_bf16_supported = is_current_stream_capturing = is_initialized = is_tf32_supported = is_available
current_device = _absent("current_device")
current_stream = _absent("current_stream")
get_device_capability = _absent("get_device_capability")
get_device_name = _absent("get_device_name")
get_device_properties = _absent("get_device_properties")
get_rng_state = _absent("get_rng_state")
init = _absent("init")
mem_get_info = _absent("mem_get_info")
set_device = _absent("set_device")
set_rng_state = _absent("set_rng_state")
set_stream = _absent("set_stream")
Event = _absent("Event")
Stream = _absent("Stream")
device = _absent("device")
stream = _absent("stream")


def __dir__() -> list[str]:
    return __all__
