"""Tensors from Python data, host memory and NumPy arrays."""
import ctypes
import itertools
import numbers
from array import array
from ctypes import c_int32, c_void_p

from . import errors
from ._convert import dtype_code, instance, int_list, scalar
from ._lib import drop, keep, result
from ._types import DTYPES, complex64, complex128, float32, float64, int64
from ._types import bool as BOOL
from ._types import dtype as dtype_class
from ._tensor import Tensor


# ---- from values ----


def tensor(data, *, dtype=None, device=None, requires_grad=False):
    """A new tensor with the values of data: a number, nested lists of numbers, a NumPy array or a tensor (copied, without history)."""
    if isinstance(data, Tensor):
        made = data.detach().to(device=device, dtype=dtype, copy=True)
    elif is_array(data):
        import numpy

        made = from_numpy(numpy.array(data, data.dtype.newbyteorder("="), order="C"))
    else:
        made = from_values(data, dtype)
    if dtype is not None or device is not None:
        made = made.to(device=device, dtype=dtype)
    return made.requires_grad_() if requires_grad else made


def as_tensor(data, dtype=None, device=None):
    """data itself if it is a tensor, one over its memory if it is a NumPy array, else tensor(data); converted where needed."""
    if is_array(data) and data.ndim:
        data = from_numpy(data)
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    return tensor(data, dtype=dtype, device=device)


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    """A 0-dim tensor; float32 by default."""
    made = result(
        Tensor,
        "tt_scalar_tensor",
        scalar(s, "scalar_tensor", "s"),
        c_int32(dtype_code(dtype or float32, "scalar_tensor", "dtype")),
    )
    return (
        made
        if device is None and not requires_grad
        else made.to(device).requires_grad_(requires_grad)
    )


def is_array(x):
    return type(x).__module__ == "numpy" and hasattr(x, "dtype") and hasattr(x, "shape")


def measured(data):
    """(shape, leaves in row-major order) of nested sequences; every level must be even."""
    shape, level = [], [data]
    while (
        level and len(shape) <= 64 and isinstance(level[0], (list, tuple, range))
    ):  # a list in itself has no end
        n = len(level[0])
        for row in level:
            if not isinstance(row, (list, tuple, range)) or len(row) != n:
                raise ValueError(
                    f"tensor(): the lists at depth {len(shape)} have different lengths"
                )
        shape.append(n)
        level = list(itertools.chain.from_iterable(level))
    return shape, level


def from_values(data, dtype):
    """Bools become bool, ints int64, floats float32 and complex numbers complex64, the widest of them all."""
    shape, leaves = measured(data)
    if leaves and all(map(is_array, leaves)):
        import numpy

        return tensor(numpy.array(data))
    leaves = [x.item() if isinstance(x, Tensor) or is_array(x) else x for x in leaves]
    kinds = set(map(type, leaves))
    for kind in kinds:
        if not issubclass(kind, (bool, int, float, complex, numbers.Number)):
            raise TypeError(f"tensor(): the data must be numbers, not {kind.__name__}")
    if any(issubclass(k, complex) for k in kinds):
        code, stored, natural, leaves = (
            "d",
            complex128,
            complex64,
            [x for v in leaves for x in (v.real, v.imag)],
        )
    elif any(not issubclass(k, int) for k in kinds):
        code, stored, natural = "d", float64, float32
    elif kinds == {bool}:
        code, stored, natural = "B", BOOL, BOOL
    else:
        code, stored, natural = "q", int64, int64 if kinds else float32
    try:
        made = from_bytes(array(code, leaves), stored, shape)
        if leaves and getattr(DTYPES[dtype_code(dtype, "tensor", "dtype")], "kind", "") == "i":
            scalar_tensor(min(leaves), dtype=dtype), scalar_tensor(
                max(leaves), dtype=dtype
            )  # they must fit
    except OverflowError:
        raise errors.InvalidArgumentError("tensor: a number of data does not fit 64 bits") from None
    return made if dtype is not None else made.to(natural)


def from_bytes(data, dtype, shape):
    """A tensor with a copy of row-major data: bytes or an array.array."""
    pointer = data if isinstance(data, bytes) else c_void_p(data.buffer_info()[0])
    return result(
        Tensor,
        "tt_tensor_from_data",
        pointer,
        c_int32(dtype.code),
        *int_list(tuple(shape), "tensor", "shape"),
    )


def index_tensor(item):
    """A list, range, bool or NumPy array as an index."""
    if is_array(item):
        return tensor(item)
    made = from_values(list(item) if isinstance(item, range) else item, None)
    return made if made.numel() or made.dtype is not float32 else made.to(int64)


# ---- over memory of the host ----


def imported(address, dtype, shape, strides, writable, owner):
    """A tensor over host memory that `owner` keeps alive. strides in elements, None: row-major."""
    steps = None if strides is None else int_list(strides, "import", "strides")[0]
    return result(
        Tensor,
        "tt_tensor_import",
        c_void_p(address),
        c_int32(dtype.code),
        *int_list(shape, "import", "shape"),
        steps,
        c_int32(writable),
        drop,
        c_void_p(keep(owner)),
    )


def from_numpy(a):
    """A tensor over the memory of a NumPy array. In-place operators refuse it if the array is read-only."""
    if not is_array(a) or not hasattr(a, "__array_interface__"):
        raise TypeError(f"from_numpy(): argument must be a numpy.ndarray, not {type(a).__name__}")
    from ._numpy import DTYPES

    face = a.__array_interface__
    if face["typestr"] not in DTYPES:
        raise TypeError(f"from_numpy(): tt has no dtype for NumPy's {a.dtype}")
    dtype = DTYPES[face["typestr"]]
    if any(s % dtype.itemsize or s < 0 for s in a.strides):
        raise ValueError(
            f"from_numpy(): strides {a.strides} are negative or no multiples of {dtype.itemsize} bytes: copy the array first"
        )
    address, read_only = face["data"]
    return imported(
        address, dtype, a.shape, tuple(s // dtype.itemsize for s in a.strides), not read_only, a
    )


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-D tensor over the memory of a bytearray, memoryview, mmap … (bytes give a tensor that in-place operators refuse)."""
    instance(dtype_class, dtype, "frombuffer", "dtype")
    view = memoryview(buffer).cast("B")
    room = len(view) - offset
    n, rest = (count, 0) if count >= 0 else divmod(room, dtype.itemsize)
    if offset < 0 or rest or not 0 < n * dtype.itemsize <= room:
        raise ValueError(
            f"frombuffer: {n} elements of {dtype.name} are not what the {len(view)} bytes of the buffer have from offset {offset} on"
        )
    buffer = (c_void_p * 12)()  # Py_buffer, whose first field is the address
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), buffer, 0)
    address = buffer[0]
    ctypes.pythonapi.PyBuffer_Release(buffer)
    made = imported(address + offset, dtype, (n,), None, not view.readonly, view)
    return made.requires_grad_() if requires_grad else made
