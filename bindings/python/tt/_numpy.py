"""Zero-copy exchange with NumPy, which is imported only when it is asked for."""
from types import SimpleNamespace

from ._types import BY_NAME
from .errors import AutogradError, DeviceError

DTYPES = {d.typestr: d for d in BY_NAME.values() if d.typestr}


def exported(t):
    """The array's base: what NumPy reads a tensor's memory from. It keeps the memory, whatever data the tensor gets later."""
    size = t.dtype.itemsize
    return SimpleNamespace(
        owner=t.detach(),
        __array_interface__={
            "version": 3,
            "shape": tuple(t.shape),
            "typestr": t.dtype.typestr,
            "data": (t.data_ptr(), not t._is_writable()),
            "strides": tuple(s * size for s in t.stride()),
        },
    )


def numpy(t, *, force=False):
    """A NumPy array over the same memory; force: over that of a copy on the CPU where there must be one."""
    if force:
        return numpy(t.detach().cpu())
    if t.requires_grad:
        raise AutogradError("numpy: self requires a gradient; use x.detach().numpy()")
    if t.device.type != "cpu":
        raise DeviceError(f"numpy: self is on {t.device}; use x.cpu().numpy()")
    if not t.dtype.typestr:
        raise TypeError(f"numpy: NumPy has no {t.dtype.name}; use x.float().numpy()")
    from numpy import asarray, empty

    return asarray(exported(t)) if t.numel() else empty(tuple(t.shape), t.dtype.typestr)
