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
    size = t.dtype.itemsize
    interface = {
        "version": 3,
        "shape": tuple(t.shape),
        "typestr": t.dtype.typestr,
        "data": (t.data_ptr(), not t._is_writable()),
        "strides": tuple(s * size for s in t.stride()),
    }
    return SimpleNamespace(owner=t.detach(), __array_interface__=interface)


def to_numpy(t: Tensor, force: bool) -> Any:
    """Returns a NumPy array over the memory of t: see Tensor.numpy."""
    if force:
        return to_numpy(t.detach().cpu(), False)
    if t.requires_grad:
        raise AutogradError("numpy: self requires a gradient; use x.detach().numpy()")
    if t.device.type != "cpu":
        raise DeviceError(f"numpy: self is on {t.device}; use x.cpu().numpy()")
    if not t.dtype.typestr:
        raise TypeError(f"numpy: NumPy has no {t.dtype.name}; use x.float().numpy()")
    from numpy import asarray, empty

    return asarray(array_interface(t)) if t.numel() else empty(tuple(t.shape), t.dtype.typestr)
