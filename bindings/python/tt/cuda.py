"""CUDA devices, by the names of torch.cuda.

x.to("cuda") moves a tensor there. The library libtt_cuda.so is opened when it is first needed.
"""
from __future__ import annotations

from . import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import device as Device


def device_count() -> int:
    """Returns the number of CUDA devices: 0 without a driver or without libtt_cuda.so."""
    return runtime.device_count("cuda")


def is_available() -> bool:
    """Returns whether there is a CUDA device."""
    return device_count() > 0


def synchronize(device: Device | str | None = None) -> None:
    """Waits for all work on a device; None: the first one."""
    if is_available():
        runtime.synchronize("cuda" if device is None else device)


def empty_cache() -> None:
    """Returns cached memory, of the CPU, too."""
    runtime.trim()


def memory_allocated(device: Device | str = "cuda") -> int:
    """Returns the bytes in use."""
    return runtime.memory_stats(device)["in_use"]


def max_memory_allocated(device: Device | str = "cuda") -> int:
    """Returns the largest number of bytes that were in use at once."""
    return runtime.memory_stats(device)["peak"]
