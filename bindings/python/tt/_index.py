"""x[1, ::2, None, ..., mask]: keys of Tensor.__getitem__ as tt_index arrays."""
from ctypes import c_int64
from struct import Struct

from . import errors

INDEX = Struct("iIqqqP")  # tt_index: kind, has, start, stop, step, tensor
IDX_INT, IDX_SLICE, IDX_NONE, IDX_ELLIPSIS, IDX_TENSOR = 1, 2, 3, 4, 5
INT_MIN, INT_MAX = -2**63, 2**63 - 1


def packed_index(key):
    """(tt_index array as bytes, its length, what must live as long)."""
    if type(key) is int:
        return INDEX.pack(IDX_INT, 0, in_int64(key), 0, 0, 0), c_int64(1), None
    keep = []
    items = [index_item(item, keep) for item in (key if isinstance(key, tuple) else (key,))]
    return b"".join(items), c_int64(len(items)), keep


def in_int64(i):
    if INT_MIN <= i <= INT_MAX:
        return i
    raise errors.OutOfRangeError(f"index {i} is out of range")


def index_item(item, keep):
    if item is None or item is Ellipsis:
        return INDEX.pack(IDX_NONE if item is None else IDX_ELLIPSIS, 0, 0, 0, 0, 0)
    if isinstance(item, slice):
        return slice_item(item)
    from ._tensor import Tensor
    if isinstance(item, Tensor):
        if not item.ndim and item.dtype.kind == "i" and item.dtype.name != "uint8":
            return INDEX.pack(IDX_INT, 0, item.item(), 0, 0, 0)
    elif isinstance(item, bool) or type(item).__name__ in ("bool_", "ndarray") or isinstance(item, (list, tuple, range)):
        from ._create import index_tensor
        item = index_tensor(item)
    elif hasattr(item, "__index__"):
        return INDEX.pack(IDX_INT, 0, in_int64(item.__index__()), 0, 0, 0)
    else:
        raise IndexError(f"an index must be an int, a slice, None, ..., a list or an integer or bool tensor, not {type(item).__name__}")
    keep.append(item)
    return INDEX.pack(IDX_TENSOR, 0, 0, 0, 0, item._address)


def slice_item(s):
    given = s.start, s.stop, s.step
    if not all(part is None or hasattr(part, "__index__") for part in given):
        raise TypeError(f"slice indices must be integers or None, not {s}")
    parts = [0 if part is None else min(max(part.__index__(), INT_MIN), INT_MAX) for part in given]
    if s.step is not None and parts[2] <= 0:
        raise ValueError("slice step must be positive")
    return INDEX.pack(IDX_SLICE, sum((part is not None) << bit for bit, part in enumerate(given)), *parts, 0)
