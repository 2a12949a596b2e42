"""The CUDA devices of this machine."""
from __future__ import annotations

from typing import Union

from .. import runtime
from .._types import device as Device
from ..errors import DeviceError

AnyDevice = Union[Device, str, int, None]


def device_count() -> int:
    """Returns the number of CUDA devices: 0 without a driver or without libtt_cuda.so."""
    return runtime.device_count("cuda")


def required(what: str, device: AnyDevice = None) -> Device:
    """Returns the CUDA device of a name or index, the current one for None. Raises DeviceError if
    it does not exist."""
    cuda_device = Device("cuda", device if isinstance(device, int) else None)
    if isinstance(device, (str, Device)):
        cuda_device = Device(device)
    count = device_count()
    if cuda_device.type != "cuda" or (cuda_device.index or 0) >= count:
        raise DeviceError(f"cuda.{what}: device is {cuda_device}: there are {count} CUDA devices")
    return cuda_device
