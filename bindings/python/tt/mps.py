"""torch.mps. tt supports no Apple devices."""
from __future__ import annotations

from typing import Any, NoReturn

from .errors import DeviceError

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


def is_available(*args: Any, **kwargs: Any) -> bool:
    """Returns False."""
    return False


def device_count(*args: Any, **kwargs: Any) -> int:
    """Returns 0."""
    return 0


def synchronize(*args: Any, **kwargs: Any) -> None:
    """Does nothing: there is no device."""


def _absent(function: str) -> Any:
    """Returns a function that raises DeviceError."""

    def raises(*args: Any, **kwargs: Any) -> NoReturn:
        raise DeviceError(f"mps.{function}: there is no MPS device")

    raises.__name__ = function
    raises.__doc__ = "Raises DeviceError: there is no device."
    return raises


manual_seed = empty_cache = synchronize
seed = set_per_process_memory_fraction = synchronize
current_allocated_memory = driver_allocated_memory = recommended_max_memory = device_count
Event = _absent("Event")
Stream = _absent("Stream")
current_stream = _absent("current_stream")
default_stream = _absent("default_stream")
get_rng_state = _absent("get_rng_state")
set_rng_state = _absent("set_rng_state")
set_stream = _absent("set_stream")
stream = _absent("stream")


def __dir__() -> list[str]:
    return __all__
