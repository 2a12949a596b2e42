"""DLPack: tensors to and from other libraries without a copy."""
import ctypes
import gc
import sys
from ctypes import PYFUNCTYPE, c_char_p, c_int, c_int32, c_void_p, py_object

from ._lib import call, result
from ._tensor import Tensor

NAMES = {
    1: (b"dltensor_versioned", b"used_dltensor_versioned"),
    0: (b"dltensor", b"used_dltensor"),
}  # major version -> capsule, once it is used
DELETER = {1: 16, 0: 56}  # where the struct has its deleter
DEVICES = {"cpu": 1, "cuda": 2, "ext": 12}
COPIED, FLAGS = 2, 24


def api(name, returns, *takes):
    return PYFUNCTYPE(returns, *takes)((name, ctypes.pythonapi))


new_capsule = api("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
is_valid, pointer = api("PyCapsule_IsValid", c_int, py_object, c_char_p), api(
    "PyCapsule_GetPointer", c_void_p, py_object, c_char_p
)
rename = api("PyCapsule_SetName", c_int, py_object, c_char_p)
capsules = (
    []
)  # (capsule, major) that we have made; a destructor in Python would have to run amid other errors


def sweep(*_):
    """Releases what nobody has taken from capsules that nobody holds any more. The collector calls it while there are capsules."""
    held = []
    while capsules:
        capsule, major = capsules.pop()
        if sys.getrefcount(capsule) > 2:
            held.append((capsule, major))
        elif is_valid(capsule, NAMES[major][0]):
            managed = pointer(capsule, NAMES[major][0])
            PYFUNCTYPE(None, c_void_p)(c_void_p.from_address(managed + DELETER[major]).value)(
                managed
            )
    capsules.extend(held)
    if not held and sweep in gc.callbacks:
        gc.callbacks.remove(sweep)


def __dlpack_device__(t):
    if t.device.type not in DEVICES:
        raise BufferError(f"__dlpack__: no memory that others can read on {t.device}")
    return DEVICES[t.device.type], t.device.index or 0


def __dlpack__(t, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule over the same memory."""
    if t.requires_grad:
        raise BufferError("__dlpack__: the tensor requires a gradient; use x.detach()")
    if dl_device is not None and tuple(map(int, dl_device)) != __dlpack_device__(t):
        raise BufferError(
            f"__dlpack__: the tensor is on {t.device}, not on device {tuple(dl_device)}; copy it there first"
        )
    major = 1 if max_version is not None and max_version[0] >= 1 else 0
    if not (major or t._is_writable()):
        raise BufferError(
            "__dlpack__: the memory is read-only, which a capsule without version cannot say"
        )
    managed = c_void_p()
    call("tt_tensor_to_dlpack", t.clone() if copy else t, c_int32(major), ctypes.byref(managed))
    if copy and major:
        ctypes.c_uint64.from_address(managed.value + FLAGS).value |= COPIED
    sweep()
    capsule = new_capsule(managed, NAMES[major][0], None)
    capsules.append((capsule, major))
    if sweep not in gc.callbacks:
        gc.callbacks.append(sweep)
    return capsule


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of an object with __dlpack__, or of a DLPack capsule."""
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        options = {key: value for key, value in (("copy", copy),) if value is not None}
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 1), **options)
        except TypeError:  # from before versions
            capsule = ext_tensor.__dlpack__()
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(
            f"from_dlpack(): argument must have __dlpack__ or be a DLPack capsule, not {type(ext_tensor).__name__}"
        )
    for major, (name, used) in NAMES.items():
        if is_valid(capsule, name):
            made = result(
                Tensor, "tt_tensor_from_dlpack", c_void_p(pointer(capsule, name)), c_int32(major)
            )
            rename(capsule, used)
            return made.to(device) if device is not None else made
    raise ValueError(
        "from_dlpack(): the capsule holds no DLPack tensor, or somebody has taken it already"
    )
