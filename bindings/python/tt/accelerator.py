"""The accelerator of this machine, CUDA or none, with the API of torch.accelerator."""
from __future__ import annotations

from . import cuda
from ._types import device as device_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "device_index",
    "empty_cache",
    "is_available",
    "set_device_index",
    "synchronize",
]
device_count = cuda.device_count
is_available = cuda.is_available
synchronize = cuda.synchronize
empty_cache = cuda.empty_cache
current_device_index = cuda.current_device
set_device_index = cuda.set_device
device_index = cuda.device


def current_accelerator(check_available: bool = False) -> Any:
    """Returns the accelerator's device type: "cuda", or None without a device.

    check_available is accepted: tt returns only available accelerators.
    """
    return device_class("cuda") if is_available() else None


def __dir__() -> list[str]:
    return __all__
