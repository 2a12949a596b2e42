"""CUDA devices, by the names of torch.cuda.

x.to("cuda") moves a tensor there. The library libtt_cuda.so is opened when it is first needed.
Without a device, questions have honest answers (0, False), seeding is done for the CPU, and what
needs a device raises DeviceError.
"""
from __future__ import annotations

from importlib import import_module

from .. import runtime
from .. import random as _random
from .._types import device as Device
from ..errors import DeviceError
from ..errors import OutOfMemoryError as OutOfMemoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from .._tensor import Tensor
    from . import amp as amp

    AnyDevice = Union[Device, str, int, None]


def device_count() -> int:
    """Returns the number of CUDA devices: 0 without a driver or without libtt_cuda.so."""
    return runtime.device_count("cuda")


def is_available() -> bool:
    """Returns whether there is a CUDA device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Returns whether there is a CUDA device: tt prepares one when it is first used."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns whether there is a CUDA device: tt computes bfloat16 on each."""
    return is_available()


def init() -> None:
    """Raises DeviceError without a CUDA device."""
    required("init")


def required(what: str, device: AnyDevice = None) -> Device:
    """Returns the CUDA device of this name, index or None. Raises DeviceError if it is absent."""
    found = Device("cuda", device if isinstance(device, int) else 0)
    if isinstance(device, (str, Device)):
        found = Device(device)
    count = device_count()
    if found.type != "cuda" or (found.index or 0) >= count:
        raise DeviceError(f"cuda.{what}: device is {found}: there are {count} CUDA devices")
    return found


def current_device() -> int:
    """Returns the index of the current device: always 0. Raises DeviceError without a device."""
    return required("current_device").index or 0


def set_device(device: AnyDevice) -> None:
    """Accepts the first device, which is always the current one.

    Raises DeviceError if the device is absent or not the first one: name it in to() instead.
    """
    if device is None or isinstance(device, int) and device < 0:
        return
    if required("set_device", device).index:
        raise DeviceError(
            f"cuda.set_device: device is {device}: the current device is always 0; "
            "move tensors by to('cuda:INDEX')"
        )


class device:
    """A block in which a device is the current one, as set_device does it."""

    def __init__(self, device: AnyDevice) -> None:
        self.idx = device

    def __enter__(self) -> None:
        set_device(self.idx)

    def __exit__(self, *_: object) -> None:
        pass


def synchronize(device: AnyDevice = None) -> None:
    """Waits for all work on a device; None: the first one."""
    if is_available():
        runtime.synchronize(required("synchronize", device))


def get_device_name(device: AnyDevice = None) -> str:
    """Returns "cuda:INDEX": tt does not ask the driver for the product's name."""
    return str(required("get_device_name", device))


def empty_cache() -> None:
    """Returns cached memory, of the CPU, too."""
    runtime.trim()


# ---- random numbers: one generator for all devices ----


def manual_seed(seed: int) -> None:
    """Seeds this thread's generator if there is a CUDA device, as tt.manual_seed does."""
    if is_available():
        _random.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds this thread's generator if there is a CUDA device, as tt.manual_seed does."""
    manual_seed(seed)


def get_rng_state(device: AnyDevice = "cuda") -> Tensor:
    """Returns the state of this thread's generator. Raises DeviceError without the device."""
    required("get_rng_state", device)
    return _random.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """Returns a state for each CUDA device."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Tensor, device: AnyDevice = "cuda") -> None:
    """Sets the state of this thread's generator. Raises DeviceError without the device."""
    required("set_rng_state", device)
    _random.set_rng_state(new_state)


def set_rng_state_all(new_states: list[Tensor]) -> None:
    """Sets the states that get_rng_state_all has returned."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


# ---- memory ----


def memory(field: str, device: AnyDevice) -> int:
    if not is_available():
        return 0
    return runtime.memory_stats(required("memory_stats", device))[field]


def memory_allocated(device: AnyDevice = None) -> int:
    """Returns the bytes in use; 0 without a CUDA device."""
    return memory("in_use", device)


def max_memory_allocated(device: AnyDevice = None) -> int:
    """Returns the largest number of bytes that were in use at once; 0 without a CUDA device."""
    return memory("peak", device)


def memory_reserved(device: AnyDevice = None) -> int:
    """Returns the bytes in use and in caches; 0 without a CUDA device."""
    return memory("reserved", device)


class Stream:
    """The one stream of a device: all work is in order."""

    def __init__(self, device: AnyDevice = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = required("Stream", device)

    def synchronize(self) -> None:
        synchronize(self.device)

    def wait_stream(self, stream: Stream) -> None:
        """Does nothing: all work of a device is in order."""


def current_stream(device: AnyDevice = None) -> Stream:
    """Returns the stream of a device. Raises DeviceError without it."""
    return Stream(device)


if not TYPE_CHECKING:

    def __getattr__(name):
        if name != "amp":
            raise AttributeError(f"module 'tt.cuda' has no attribute '{name}'")
        return import_module(".amp", __name__)
