"""Groups of tensors for optimizers that compute with lists of them, with the names of
torch.utils._foreach_utils."""
from __future__ import annotations

from typing import Any, Sequence

from .._tensor import Tensor
from .._types import device as Device

Group = tuple[list[list[Any]], list[int]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Returns the types of devices on which PyTorch's optimizers take lists by default."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Returns the types of devices on which tt's optimizers take one step for all tensors."""
    return ["cpu", "cuda"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[Any, Group]:
    """Returns {(device, dtype) of tensors of the first list: (the lists of this group, the indices
    in the first list, if with_indices)}. The other lists are empty, or as long as the first; their
    elements go with those of the first one."""
    groups: dict[Any, Group] = {}
    for i, t in enumerate(tensorlistlist[0]):
        if t is None:
            raise ValueError(f"tensorlistlist[0][{i}] is None: must be a Tensor")
        key = (t.device, t.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for group, tensors in zip(lists, tensorlistlist):
            if tensors:
                group.append(tensors[i])
        if with_indices:
            indices.append(i)
    return groups


def _device_has_foreach_support(device: Device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: Sequence[Tensor | None], device: Device) -> bool:
    """Returns whether the tensors are of the device's lists: all of them plain ones."""
    plain = all(t is None or isinstance(t, Tensor) for t in tensors)
    return plain and _device_has_foreach_support(device)
