"""The memory of tensors as NumPy arrays, which share it, and as lists. NumPy is imported only when
it is used."""
from __future__ import annotations

from ctypes import byref, c_bool, c_char, c_double, c_float, c_int8, c_int16, c_int32, c_int64
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64
from struct import Struct
from types import SimpleNamespace
from typing import Any

from ._depth import depth
from ._tensor_facts import TensorHandle
from ._lib import fail, lib, local, quick
from ._positions import note_read
from ._positions import state as capturing
from ._types import BY_NAME, device
from ._types import DTYPES as BY_CODE
from .errors import AutogradError, DeviceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._tensor import Tensor

DTYPES = {d.typestr: d for d in BY_NAME.values() if d.typestr}  # by NumPy's typestr
CPU = device("cpu").code

# ---- tt_tensor_info, which one call fills ----

get_info, detach = quick.tt_tensor_get_info, lib.tt_detach
# numel, data, dtype, ndim, type and index of the device, contiguous, writable, requires_grad
HEAD = Struct("qP7i0q")
# the sizes behind it, by the number of dimensions, and as many strides
SIZES = [Struct(f"{n}q").unpack_from for n in range(9)]
Info: Any = c_char * (HEAD.size + 16 * 8)
AT = HEAD.size
unpack_head = HEAD.unpack_from
TYPES: Any = {"?": c_bool, "B": c_uint8, "b": c_int8, "h": c_int16, "i": c_int32, "q": c_int64}
TYPES |= {"H": c_uint16, "I": c_uint32, "Q": c_uint64}
TYPES |= {"f": c_float, "d": c_double}
# by tt_dtype: the format that memoryview reads and the type of ctypes; None for complex elements
FORMATS = tuple(None if d is None or d.kind == "c" else d.read for d in BY_CODE)
ELEMENTS = tuple(map(TYPES.get, FORMATS))

# functions that make a ctypes array over an address
bytes_at: dict[int, Any] = {}  # by the number of bytes
items_at: dict[int, Any] = {}  # by 32 * number of elements + tt_dtype


def array_at(cached: dict[int, Any], key: int, element: Any, n: int) -> Any:
    """Returns the function of n elements and caches it as cached[key]. The cache is small."""
    if len(cached) >= 256:
        cached.clear()
    function = cached[key] = (element * n).from_address
    return function


def check_readable(t: Tensor) -> None:
    """Raises RuntimeError if t has elements of its own for each sample of a vmap."""
    if t.numel():
        t.flatten()[0].item()


def to_list(t: Tensor) -> Any:
    """Returns the elements as nested lists; None if the memory cannot be read directly."""
    if depth.vmap:
        check_readable(t)
    info = Info()
    get_info(t._as_parameter_, info)
    n, data, code, ndim, where, _, contiguous, _, _ = unpack_head(info)
    if where != CPU or not contiguous or not ELEMENTS[code] or ndim > 8:
        return None
    if not n or not ndim:
        return None
    if capturing.noted is not None:
        note_read()
    key = n << 5 | code
    items = (items_at.get(key) or array_at(items_at, key, ELEMENTS[code], n))(data)
    if ndim == 1:
        return items[:]
    return memoryview(items).cast("B").cast(FORMATS[code], SIZES[ndim](info, AT)).tolist()


# ---- NumPy ----


class NotOnHost(DeviceError, TypeError):
    """A tensor on a device has no array: PyTorch raises TypeError."""


ndarray: Any = None  # once NumPy is imported
dtypes: dict[int, Any] = {}  # tt_dtype -> NumPy's


def import_numpy() -> None:
    global ndarray
    import numpy

    dtypes.update((d.code, numpy.dtype(d.typestr)) for d in DTYPES.values())
    ndarray = numpy.ndarray


def to_numpy(t: Tensor, force: bool) -> Any:
    """Returns a NumPy array over the memory of t: see Tensor.numpy."""
    if depth.vmap:
        check_readable(t)
    if ndarray is None:
        import_numpy()
    if capturing.noted is not None:
        note_read()
    info = Info()
    get_info(t._as_parameter_, info)
    n, data, code, ndim, where, _, contiguous, writable, gradient = unpack_head(info)
    dtype = dtypes.get(code)
    if gradient or where != CPU or not contiguous or ndim > 8 or dtype is None:
        return converted(t, force)
    shape = SIZES[ndim](info, AT)
    if not n:
        return ndarray(shape, dtype)
    size = n * dtype.itemsize
    block = (bytes_at.get(size) or array_at(bytes_at, size, c_char, size))(data)
    # keeps the memory as the array's base, also if t gets other data later
    block.owner = owner = TensorHandle()
    if detach(local.ctx, t._as_parameter_, byref(owner)):
        fail()
    array = ndarray(shape, dtype, block)
    if not writable:
        array.flags.writeable = False
    return array


def converted(t: Tensor, force: bool) -> Any:
    """Returns the array of a tensor that NumPy cannot share directly."""
    if force:
        return to_numpy(t.detach().cpu(), False)
    if t.requires_grad:
        if quick.tt_grad_enabled(local.ctx):
            raise AutogradError("numpy: self requires a gradient; use x.detach().numpy()")
        return to_numpy(t.detach(), False)
    if not t.is_cpu:
        raise NotOnHost(f"numpy: self is on {t.device}; use x.cpu().numpy()")
    if not t.dtype.typestr:
        raise TypeError(f"numpy: NumPy has no {t.dtype.name}; use x.float().numpy()")
    import numpy

    if not t.numel():
        return numpy.empty(t.shape, t.dtype.typestr)
    return numpy.asarray(array_interface(t))


def array_interface(t: Tensor) -> SimpleNamespace:
    """Returns an object with NumPy's array interface. As the array's base it keeps the memory."""
    interface = {
        "version": 3,
        "shape": t.shape,
        "typestr": t.dtype.typestr,
        "data": (t.data_ptr(), not t._is_writable()),
        "strides": tuple([s * t.itemsize for s in t._strides]),
    }
    return SimpleNamespace(owner=t.detach(), __array_interface__=interface)
