"""x[1, ::2, None, ..., mask]: keys of Tensor.__getitem__ as tt_index arrays."""
from __future__ import annotations

import warnings
from ctypes import c_int64
from operator import index
from struct import Struct
from struct import error as struct_error
from typing import Any

from . import errors
from ._positions import is_number, state

INDEX = Struct("iIqqqP")  # tt_index: kind, has, start, stop, step, tensor
IDX_INT, IDX_SLICE, IDX_NONE, IDX_ELLIPSIS, IDX_TENSOR = 1, 2, 3, 4, 5
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
ONE = c_int64(1)


def packed_index(
    key: Any, of: Any = None, writes: bool = False
) -> tuple[bytes, c_int64, list[Any]]:
    """Returns (tt_index array, its length, tensors that it points to). of: the tensor that is read
    at the index. writes: of an assignment."""
    if type(key) is slice:
        return slice_item(key.start, key.stop, key.step), ONE, []
    keep: list[Any] = []
    if stands_for_tuple(key):
        warnings.warn(
            "x[[a, b]] with lists, tensors, slices or None inside is read as x[a, b]; "
            "write x[tuple(key)]",
            stacklevel=3,
        )
        key = tuple(key)
    try:
        keys = key if isinstance(key, tuple) else (key,)
        noted = state.noted
        stays = not (noted is None or writes or in_vmap()) and noted.takes(of, keys)
        items = [index_item(item, keep, writes, stays) for item in keys]
    except struct_error:
        raise errors.OutOfRangeError(f"index {key} is out of range") from None
    return b"".join(items), c_int64(len(items)), keep


def stands_for_tuple(key: Any) -> bool:
    """Returns whether PyTorch reads the list key as a tuple: it is short and not only numbers."""
    if not isinstance(key, list) or len(key) >= 32:
        return False
    return any(
        x is None or x is Ellipsis or isinstance(x, slice) or hasattr(x, "__len__") for x in key
    )


def index_item(item: Any, keep: list[Any], writes: bool, stays: bool) -> bytes:
    """Returns the tt_index of one item. keep receives the tensor that it points to. stays: a
    position in a tensor is not read."""
    if type(item) is int:
        return INDEX.pack(IDX_INT, 0, item, 0, 0, 0)
    if item is None or item is Ellipsis:
        return INDEX.pack(IDX_NONE if item is None else IDX_ELLIPSIS, 0, 0, 0, 0, 0)
    if isinstance(item, slice):
        return slice_item(item.start, item.stop, item.step)
    from ._tensor import Tensor

    if isinstance(item, Tensor):
        if is_number(item) and not (writes or stays or in_vmap()):  # C reads that of an assignment
            return INDEX.pack(IDX_INT, 0, item.item(), 0, 0, 0)
    elif isinstance(item, (bool, list, tuple, range)) or of_numpy(item):
        from ._create import index_tensor

        item = index_tensor(item)
    elif hasattr(item, "__index__"):
        return INDEX.pack(IDX_INT, 0, index(item), 0, 0, 0)
    else:
        raise IndexError(
            "an index must be an int, a slice, None, ..., a list or an integer or bool tensor, "
            f"not {type(item).__name__}"
        )
    keep.append(item)
    return INDEX.pack(IDX_TENSOR, stays, 0, 0, 0, item._address)


def in_vmap() -> bool:
    """Returns whether a number may be another one for each sample."""
    from ._depth import depth

    return depth.vmap > 0


def of_numpy(item: Any) -> bool:
    return type(item).__name__ in ("bool_", "ndarray")


def slice_item(start: Any, stop: Any, step: Any) -> bytes:
    """Returns the tt_index of a slice. Bounds beyond 64 bits are clamped."""
    given = (start is not None) | (stop is not None) << 1 | (step is not None) << 2
    try:
        return INDEX.pack(IDX_SLICE, given, start or 0, stop or 0, step or 0, 0)
    except struct_error:
        pass  # not of int, or beyond 64 bits
    parts, given = [], 0
    for bit, part in enumerate((start, stop, step)):
        if part is None:
            parts.append(0)
        else:
            parts.append(min(max(index(part), INT_MIN), INT_MAX))
            given |= 1 << bit
    return INDEX.pack(IDX_SLICE, given, *parts, 0)
