"""Tensors from Python values, CPU memory and NumPy arrays."""
from __future__ import annotations

import ctypes
import itertools
import numbers
import sys
from array import array
from collections import deque
from ctypes import byref, c_int32, c_void_p, py_object
from functools import reduce
from typing import Any, Literal

from . import errors
from ._convert import dtype_code, instance, int_list, scalar
from ._tensor_facts import TensorHandle
from ._interception import overridable
from ._lib import drop, fail, keep, lib, local
from . import _memory
from ._dlpack import DLTENSOR, OLD, USED_DLTENSOR, capsule_pointer, import_dlpack
from ._dlpack import set_capsule_name
from ._memory import DTYPES as BY_TYPESTR
from ._positions import note_read
from ._tensor import Tensor, tensor_result, wrap
from ._types import BOOL, BY_NAME, DTYPES, Defaults, complex128, float32, float64, int64
from ._types import dtype as dtype_class
from ._types import device as Device
from ._types import dtype as DType

tensor_import = lib.tt_tensor_import
SEQUENCES = (list, tuple, range, deque)
MAX_DEPTH = 64  # a list that contains itself has no end


# ---- from values ----


@overridable
def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Returns a new tensor with the values of data, without history. pin_memory is ignored.

    data: a number, nested lists of numbers, a NumPy array or a tensor.
    dtype: by default that of the array or tensor; for Python numbers bool, int64, and the default
        floating and complex dtypes (float32 and complex64; see set_default_dtype).
    device: by default that of the tensor, else the CPU; or the default device, if there is one.
    Raises ValueError if nested lists have different lengths, TypeError for other data.
    """
    if device is None:
        device = local.device
    if dtype is None and type(data) is list:
        result = from_list(data)
        if result is not None and device is None:
            return result.requires_grad_() if requires_grad else result
    if isinstance(data, Tensor):
        result = data.detach().to(device=device, dtype=dtype, copy=True)
    elif is_array(data):
        import numpy

        keeps: Literal["C", "K"] = "C" if 0 in data.strides else "K"  # K: the order in memory
        result = from_numpy(numpy.array(data, data.dtype.newbyteorder("="), order=keeps))
    else:
        result = from_values(data, dtype)
    if dtype is not None or device is not None:
        result = result.to(device=device, dtype=dtype)
    return result.requires_grad_() if requires_grad else result


@overridable
def as_tensor(data: Any, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Returns data as a tensor, without a copy if possible.

    A tensor is returned unchanged and a NumPy array shares its memory with the result, unless dtype
    or device require a copy. Anything else is passed to tensor().
    """
    if device is None:
        device = local.device
    if is_array(data) and data.ndim:
        data = from_numpy(data)
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    return tensor(data, dtype=dtype, device=device)


@overridable
def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Converts obj to a tensor: a tensor, an array, a buffer, a number or nested lists of numbers.

    Shares memory if possible and keeps the history of a tensor. copy=True: always copies;
    copy=False: raises ValueError if a copy is needed. requires_grad=False detaches a tensor.
    """
    if copy:
        return tensor(buffer_tensor(obj, dtype), dtype=dtype, device=device).requires_grad_(
            requires_grad
        )
    result = as_tensor(buffer_tensor(obj, dtype), dtype=dtype, device=device)
    source = obj if isinstance(obj, Tensor) else None
    if copy is False:
        shares = source is None and (is_array(obj) or is_buffer(obj)) and result.is_cpu
        if not (shares and result.dtype is as_tensor(buffer_tensor(obj, dtype)).dtype) and (
            source is None or result.data_ptr() != source.data_ptr()
        ):
            raise ValueError("asarray: copy is False: obj cannot be a tensor without a copy")
    if requires_grad:
        return result if result.requires_grad else result.detach().requires_grad_()
    return result.detach() if result.requires_grad else result


def is_buffer(x: Any) -> bool:
    """Returns whether x is bytes, an array.array or another object with the buffer protocol."""
    if isinstance(x, (Tensor, *SEQUENCES, str)) or is_array(x):
        return False
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


def buffer_tensor(x: Any, dtype: DType | None) -> Any:
    """Returns a tensor over a buffer's memory, of dtype or the default dtype; others unchanged.

    An object with __dlpack__ and a storage become tensors, too.
    """
    if is_buffer(x):
        return frombuffer(x, dtype=dtype or Defaults.float)
    if type(x).__name__ in ("TypedStorage", "UntypedStorage"):
        return x.elements
    if not isinstance(x, Tensor) and not is_array(x) and hasattr(x, "__dlpack__"):
        from ._dlpack import from_dlpack

        return from_dlpack(x)
    return x


@overridable
def scalar_tensor(
    s: complex,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Returns a 0-dim tensor of a number. dtype: by default get_default_dtype(). layout and
    pin_memory are ignored."""
    wanted = dtype or Defaults.float
    code = dtype_code(wanted, "scalar_tensor", "dtype")
    number = scalar(s, "scalar_tensor", "s", wanted)
    t = tensor_result("tt_scalar_tensor", number, c_int32(code))
    if device is None:
        device = local.device
    if device is None and not requires_grad:
        return t
    return t.to(device).requires_grad_(requires_grad)


def is_array(x: Any) -> bool:
    """Returns whether x is a NumPy array, also of a subclass, or a NumPy scalar."""
    if type(x).__module__ == "numpy":
        return hasattr(x, "dtype") and hasattr(x, "shape")
    numpy = sys.modules.get("numpy") if hasattr(x, "__array_interface__") else None
    return numpy is not None and isinstance(x, numpy.ndarray)


class NoNumbersError(TypeError, RuntimeError):
    """The data of a tensor are no numbers."""


def flattened(data: Any) -> tuple[list[int], list[Any]]:
    """Returns (shape, items in row-major order) of nested sequences."""
    shape: list[int] = []
    level = [data]
    while level and len(shape) <= MAX_DEPTH and isinstance(level[0], SEQUENCES):
        n = len(level[0])
        for row in level:
            if not isinstance(row, SEQUENCES) or len(row) != n:
                raise ValueError(
                    f"tensor(): the lists at depth {len(shape)} have different lengths"
                )
        shape.append(n)
        level = list(itertools.chain.from_iterable(level))
    return shape, level


def from_values(data: Any, dtype: DType | None) -> Tensor:
    """Returns a tensor of nested sequences of numbers.

    The dtype is that of the widest number: bool, int64, float32 or complex64, and float64 or
    complex128 with a NumPy scalar of those; beside 0-dim tensors, the one to which theirs and those
    of the numbers promote. With a dtype, the result has the widest dtype of its kind, which the
    caller converts.
    """
    shape, items = flattened(data)
    if items and all(map(is_array, items)):
        import numpy

        return tensor(numpy.array(data))
    wide = any(is_array(x) and x.dtype.name in ("float64", "complex128") for x in items)
    mixed = dtype is None and any(isinstance(x, Tensor) for x in items)
    promoted = common_dtype(items) if mixed else None
    items = [x.item() if isinstance(x, Tensor) or is_array(x) else x for x in items]
    kinds = set(map(type, items))
    for kind in kinds:
        if not issubclass(kind, (bool, int, float, complex, numbers.Number)):
            raise NoNumbersError(f"Could not infer dtype of {kind.__name__}: it is no number")
    if any(issubclass(kind, complex) for kind in kinds):
        code, stored, natural = "d", complex128, complex128 if wide else Defaults.complex
        if kind_of(dtype) in ("i", "f"):
            raise TypeError(f"tensor(): the data has complex numbers: they are no {dtype}")
        items = [part for x in items for part in (x.real, x.imag)]
    elif any(not issubclass(kind, int) for kind in kinds) or beyond_int64(items, dtype):
        code, stored, natural = "d", float64, float64 if wide else Defaults.float
    elif kinds == {bool}:
        code, stored, natural = "B", BOOL, BOOL
    else:
        code, stored, natural = "q", int64, int64 if kinds else Defaults.float
        if dtype is UINT64:
            code, stored = "Q", UINT64
    try:
        result = from_bytes(array(code, items), stored, shape)
        if items and kind_of(dtype) == "i" and stored is not UINT64:  # array() has checked uint64
            for extreme in (min(items), max(items)):
                scalar_tensor(extreme, dtype=dtype)  # raises unless it fits
    except OverflowError:
        raise errors.InvalidArgumentError("tensor: a number of data does not fit 64 bits") from None
    return result if dtype is not None else result.to(promoted or natural)


def common_dtype(items: list[Any]) -> DType:
    """Returns the dtype to which 0-dim tensors and numbers promote."""
    from ._promotion import promote_types

    of_each_kind = {(type(x), getattr(x, "dtype", None)): x for x in items}.values()
    dtypes = {x.dtype if isinstance(x, Tensor) else tensor(x).dtype for x in of_each_kind}
    return reduce(promote_types, dtypes)


def beyond_int64(items: list[Any], dtype: DType | None) -> bool:
    """Returns whether dtype is no integer dtype and some of the ints do not fit int64."""
    if dtype is None or not items or kind_of(dtype) == "i":
        return False
    return min(items) < -(2**63) or max(items) >= 2**63


def kind_of(dtype: DType | None) -> str:
    return getattr(DTYPES[dtype_code(dtype, "tensor", "dtype")], "kind", "")


UINT64 = BY_NAME["uint64"]
# dtype -> type code of array
PLAIN = {float32: "f", float64: "d"}


def from_list(data: list[Any]) -> Tensor | None:
    """Returns a tensor of a list of ints only or floats only; None for other lists."""
    kinds = set(map(type, data))
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    code, dtype = "q", int64
    if kind is float:
        dtype = Defaults.float
        code = PLAIN.get(dtype, "")
    elif kind is not int:
        return None
    if not code:
        return None
    try:
        return from_bytes(array(code, data), dtype, (len(data),))
    except OverflowError:
        raise errors.InvalidArgumentError("tensor: a number of data does not fit 64 bits") from None


def from_bytes(data: Any, dtype: DType, shape: Any) -> Tensor:
    """Returns a tensor with a copy of row-major data: bytes or an array.array."""
    pointer = data if isinstance(data, bytes) else c_void_p(data.buffer_info()[0])
    sizes = int_list(tuple(shape), "tensor", "shape")
    return tensor_result("tt_tensor_from_data", pointer, c_int32(dtype.code), *sizes)


def index_tensor(item: Any) -> Tensor:
    """Returns a list, range, bool or NumPy array as a tensor for indexing."""
    if is_array(item):
        return tensor(item)
    index = from_values(list(item) if isinstance(item, range) else item, None)
    return index if index.numel() or index.dtype is not Defaults.float else index.to(int64)


# ---- over memory of another tensor ----


def viewed_as(x: Tensor, to: DType) -> Tensor:
    """Returns a view of x's bytes as another dtype: Tensor.view(dtype).

    The view has no history, and autograd does not notice writes to it.
    """
    if to is x.dtype:
        return x.view(x.shape)
    if not x.is_cpu:
        raise errors.UnimplementedError(f"view: self is on {x.device}: view(dtype) is for the CPU")
    shape, strides = list(x.shape), list(x.stride())
    have, want = x.itemsize, to.itemsize
    if have != want and not shape:
        raise errors.ShapeError(f"view: self is 0-dim {x.dtype}: {to} has another size")
    if have != want and strides[-1] != 1:
        raise errors.ShapeError(
            f"view: self has strides {tuple(strides)}: the last one must be 1 to view {x.dtype} as "
            f"{to}"
        )
    if have > want:
        times = have // want
        shape[-1] *= times
        strides = [stride * times for stride in strides[:-1]] + [1]
    elif have < want:
        times = want // have
        starts = [shape[-1], x.storage_offset(), *strides[:-1]]
        if any(start % times for start in starts):
            raise errors.ShapeError(
                f"view: self is {list(shape)} with strides {tuple(strides)} and offset "
                f"{x.storage_offset()}: the last size, the offset and the other strides must be "
                f"multiples of {times} to view {x.dtype} as {to}"
            )
        shape[-1] //= times
        strides = [stride // times for stride in strides[:-1]] + [1]
    if not x.numel():
        return x.new_empty(tuple(shape), dtype=to)
    note_read()
    return imported(x.data_ptr(), to, tuple(shape), tuple(strides), x._is_writable(), x)


# ---- over memory of the application ----


def imported(
    address: int,
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    writable: bool,
    owner: Any,
) -> Tensor:
    """Returns a tensor over memory that `owner` keeps alive.

    strides: in elements; None: row-major.
    """
    sizes, n = int_list(shape, "import", "shape")
    h = TensorHandle()
    if tensor_import(
        local.ctx,
        c_void_p(address),
        c_int32(dtype.code),
        sizes,
        n,
        None if strides is None else int_list(strides, "import", "strides")[0],
        c_int32(writable),
        drop,
        c_void_p(keep(owner)),
        byref(h),
    ):
        fail()
    return wrap(h)


def from_numpy(a: Any) -> Tensor:
    """Returns a tensor over the memory of a NumPy array.

    In-place operators raise if the array is read-only. Raises TypeError for a dtype that tt lacks,
    ValueError for strides that are negative or no multiple of the itemsize.
    """
    if type(a) is not _memory.ndarray:  # not or not yet
        if not is_array(a) or _memory.ndarray is not None:
            return from_interface(a)
        _memory.import_numpy()
        return from_numpy(a)
    try:
        capsule = py_object(a.__dlpack__())
    except (BufferError, TypeError, AttributeError):  # read-only, or of a dtype that DLPack lacks
        return from_interface(a)
    address = capsule_pointer(capsule, DLTENSOR)
    # before the import: what interrupts here may leak the array, but not free it twice
    set_capsule_name(capsule, USED_DLTENSOR)
    h = TensorHandle()
    if import_dlpack(local.ctx, address, OLD, byref(h)):
        set_capsule_name(capsule, DLTENSOR)
        return from_interface(a)
    t = object.__new__(Tensor)  # wrap(h), whose call would take a twentieth of the time
    t._as_parameter_ = h
    return t


def from_interface(a: Any) -> Tensor:
    """Returns a tensor over an array that DLPack cannot describe. Raises if that is impossible."""
    interface = a.__array_interface__ if is_array(a) else None
    if interface is None:
        raise TypeError(f"from_numpy(): argument must be a numpy.ndarray, not {type(a).__name__}")
    dtype: Any = BY_TYPESTR.get(interface["typestr"])
    if dtype is None:
        raise TypeError(f"from_numpy(): tt has no dtype for NumPy's {a.dtype}")
    if any(s % dtype.itemsize or s < 0 for s in a.strides):
        raise ValueError(
            f"from_numpy(): strides {a.strides} are negative or no multiples of "
            f"{dtype.itemsize} bytes: copy the array first"
        )
    address, read_only = interface["data"]
    strides = None
    if interface["strides"] is not None:
        strides = tuple(s // dtype.itemsize for s in a.strides)
    return imported(address, dtype, a.shape, strides, not read_only, a)


def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Returns a 1-D tensor over the memory of an object with the buffer protocol.

    In-place operators raise for a tensor over bytes or another read-only buffer.
    count: number of elements; -1: up to the end. offset: bytes before the first element.
    Raises ValueError if the buffer is too small.
    """
    instance(dtype_class, dtype, "frombuffer", "dtype")
    view = memoryview(buffer).cast("B")
    available = len(view) - offset
    n, rest = (count, 0) if count >= 0 else divmod(available, dtype.itemsize)
    if offset < 0 or rest or not 0 < n * dtype.itemsize <= available:
        raise ValueError(
            f"frombuffer: {n} elements of {dtype.name} are not what the {len(view)} bytes of the "
            f"buffer have from offset {offset} on"
        )
    py_buffer: Any = (c_void_p * 12)()  # Py_buffer, whose first field is the address
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), py_buffer, 0)
    address = py_buffer[0]
    ctypes.pythonapi.PyBuffer_Release(py_buffer)
    result = imported(address + offset, dtype, (n,), None, not view.readonly, view)
    return result.requires_grad_() if requires_grad else result
