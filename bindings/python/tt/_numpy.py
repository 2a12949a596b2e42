"""Zero-copy exchange with NumPy, which is imported only when it is used."""
from __future__ import annotations

from types import SimpleNamespace

from ._types import BY_NAME
from .errors import AutogradError, DeviceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._tensor import Tensor

DTYPES = {d.typestr: d for d in BY_NAME.values() if d.typestr}  # by NumPy's typestr


def array_interface(t: Tensor) -> SimpleNamespace:
    """Returns the object that NumPy makes an array of.

    As the array's base it keeps the memory, also if t gets other data later.
    """
    dtype = t.dtype
    strides = None
    if not t._is_contiguous():
        strides = tuple([s * dtype.itemsize for s in t._strides])
    interface = {
        "version": 3,
        "shape": t.shape,
        "typestr": dtype.typestr,
        "data": (t.data_ptr(), not t._is_writable()),
        "strides": strides,
    }
    return SimpleNamespace(owner=t.detach(), __array_interface__=interface)


def to_numpy(t: Tensor, force: bool) -> Any:
    """Returns a NumPy array over the memory of t: see Tensor.numpy."""
    if force:
        return to_numpy(t.detach().cpu(), False)
    if t.requires_grad:
        raise AutogradError("numpy: self requires a gradient; use x.detach().numpy()")
    if not t.is_cpu:
        raise DeviceError(f"numpy: self is on {t.device}; use x.cpu().numpy()")
    if not t.dtype.typestr:
        raise TypeError(f"numpy: NumPy has no {t.dtype.name}; use x.float().numpy()")
    import numpy

    if not t.numel():
        return numpy.empty(t.shape, t.dtype.typestr)
    return numpy.asarray(array_interface(t))
