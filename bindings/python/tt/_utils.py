"""Names of torch._utils that programs touch."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any, Sequence

from ._tensor import Tensor
from ._types import device as device_class
from ._types import dtype
from .nn.parameter import Parameter

__all__: list[str] = []


def _element_size(dtype: dtype) -> int:
    """Returns the number of bytes of an element."""
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Returns the index of a CUDA device. optional: None and "cuda" are the current device;
    allow_cpu: the CPU is -1."""
    if isinstance(device, int):
        return device
    if device is None and not optional:
        raise ValueError("_get_device_index: device is None: must be a device")
    found = device_class("cuda" if device is None else device)
    if found.type == "cpu" and allow_cpu:
        return -1
    if found.type != "cuda":
        raise ValueError(f"_get_device_index: device is {device}: must be a CUDA device")
    if found.index is not None:
        return found.index
    if not optional:
        raise ValueError(f"_get_device_index: device is {device}: must have an index")
    from .cuda import current_device

    return current_device()


def _get_available_device_type() -> str | None:
    """Returns the type of the accelerator, or None without one."""
    from .accelerator import current_accelerator

    found = current_accelerator(check_available=True)
    return None if found is None else found.type


def _get_device_module(device_type: str) -> Any:
    """Returns the module of a device type, as tt.cuda."""
    from ._settings import get_device_module

    return get_device_module(device_type)


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Returns the elements of all tensors as one dimension."""
    from ._ops import find

    return find("tt", "cat")([x.reshape(-1) for x in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Returns views of flat in the shapes of tensors."""
    parts = flat.split([x.numel() for x in tensors])
    return tuple(part.view(x.shape) for part, x in zip(parts, tensors))


def _rebuild_tensor(storage: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """Returns a view of a storage."""
    from ._create import tensor

    return tensor([], dtype=storage.dtype).set_(storage, offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, *rest: Any
) -> Tensor:
    """Returns a view of a storage as a leaf."""
    return _rebuild_tensor(storage, offset, size, stride).requires_grad_(requires_grad)


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: OrderedDict[Any, Any]) -> Any:
    """Returns a Parameter."""
    return Parameter(data, requires_grad)
