"""x[1, ::2, None, ..., mask]: keys of Tensor.__getitem__ as tt_index arrays."""
import warnings
from ctypes import c_int64
from operator import index
from struct import Struct
from struct import error as struct_error

from . import errors

INDEX = Struct("iIqqqP")  # tt_index: kind, has, start, stop, step, tensor
IDX_INT, IDX_SLICE, IDX_NONE, IDX_ELLIPSIS, IDX_TENSOR = 1, 2, 3, 4, 5
INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def packed_index(key):
    """(tt_index array as bytes, its length, what must live as long)."""
    keep = []
    if stands_for_tuple(key):
        warnings.warn(
            "x[[a, b]] with lists, tensors, slices or None inside is read as x[a, b]; write x[tuple(key)]",
            stacklevel=3,
        )
        key = tuple(key)
    try:
        items = [index_item(item, keep) for item in (key if isinstance(key, tuple) else (key,))]
    except struct_error:
        raise errors.OutOfRangeError(f"index {key} is out of range") from None
    return b"".join(items), c_int64(len(items)), keep


def stands_for_tuple(key):
    """Is it a list that PyTorch takes for a tuple: a short one with more than numbers in it?"""
    return (
        isinstance(key, list)
        and len(key) < 32
        and any(
            x is None or x is Ellipsis or isinstance(x, slice) or hasattr(x, "__len__") for x in key
        )
    )


def index_item(item, keep):
    if type(item) is int:
        return INDEX.pack(IDX_INT, 0, item, 0, 0, 0)
    if item is None or item is Ellipsis:
        return INDEX.pack(IDX_NONE if item is None else IDX_ELLIPSIS, 0, 0, 0, 0, 0)
    if isinstance(item, slice):
        return slice_item(item.start, item.stop, item.step)
    from ._tensor import Tensor

    if isinstance(item, Tensor):
        if not item.ndim and item.dtype.kind == "i" and item.dtype.name != "uint8":
            return INDEX.pack(IDX_INT, 0, item.item(), 0, 0, 0)
    elif (
        isinstance(item, bool)
        or type(item).__name__ in ("bool_", "ndarray")
        or isinstance(item, (list, tuple, range))
    ):
        from ._create import index_tensor

        item = index_tensor(item)
    elif hasattr(item, "__index__"):
        return INDEX.pack(IDX_INT, 0, index(item), 0, 0, 0)
    else:
        raise IndexError(
            f"an index must be an int, a slice, None, ..., a list or an integer or bool tensor, not {type(item).__name__}"
        )
    keep.append(item)
    return INDEX.pack(IDX_TENSOR, 0, 0, 0, 0, item._address)


def slice_item(*given):
    parts = [0 if part is None else min(max(index(part), INT_MIN), INT_MAX) for part in given]
    return INDEX.pack(
        IDX_SLICE, sum((part is not None) << bit for bit, part in enumerate(given)), *parts, 0
    )
