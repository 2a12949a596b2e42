"""Zero-copy exchange with NumPy, which is imported only when it is asked for."""
from .errors import AutogradError, DeviceError

TYPESTR = {"bool": "|b1", "uint8": "|u1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "float16": "<f2",
           "float32": "<f4", "float64": "<f8", "complex64": "<c8", "complex128": "<c16"}
NAMES = {text: name for name, text in TYPESTR.items()}


class Exported:
    """What NumPy reads a tensor's memory from; the array's base, so that the tensor lives as long as the array."""
    __slots__ = ("owner", "__array_interface__")

    def __init__(self, t):
        self.owner = t
        size = t.dtype.itemsize
        read_only = not t._is_writable()
        self.__array_interface__ = {"version": 3, "shape": tuple(t.shape), "typestr": TYPESTR[t.dtype.name],
                                    "data": (t.data_ptr(), read_only), "strides": tuple(s * size for s in t.stride())}


def numpy(t, *, force=False):
    """A NumPy array over the same memory; force: over that of a copy on the CPU where there must be one."""
    if force:
        return numpy(t.detach().cpu())
    if t.requires_grad:
        raise AutogradError("numpy: self requires a gradient; use x.detach().numpy()")
    if t.device.type != "cpu":
        raise DeviceError(f"numpy: self is on {t.device}; use x.cpu().numpy()")
    if t.dtype.name not in TYPESTR:
        raise TypeError(f"numpy: NumPy has no {t.dtype.name}; use x.float().numpy()")
    from numpy import asarray, empty
    return asarray(Exported(t)) if t.numel() else empty(tuple(t.shape), TYPESTR[t.dtype.name])
