"""torch.mps. tt supports no Apple devices."""
from __future__ import annotations

from ._absent_device import device_count as device_count
from ._absent_device import is_available as is_available
from ._absent_device import refusing_function
from ._absent_device import synchronize as synchronize

__all__ = [
    "Event",
    "Stream",
    "current_allocated_memory",
    "current_stream",
    "default_stream",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "manual_seed",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_stream",
    "stream",
    "synchronize",
]


manual_seed = empty_cache = synchronize
seed = set_per_process_memory_fraction = synchronize
current_allocated_memory = driver_allocated_memory = recommended_max_memory = device_count
Event = refusing_function("mps", "Event")
Stream = refusing_function("mps", "Stream")
current_stream = refusing_function("mps", "current_stream")
default_stream = refusing_function("mps", "default_stream")
get_rng_state = refusing_function("mps", "get_rng_state")
set_rng_state = refusing_function("mps", "set_rng_state")
set_stream = refusing_function("mps", "set_stream")
stream = refusing_function("mps", "stream")


def __dir__() -> list[str]:
    return __all__
