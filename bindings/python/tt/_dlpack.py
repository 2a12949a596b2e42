"""DLPack: exchanges tensors with other libraries without a copy."""
from __future__ import annotations

import ctypes
import gc
import sys
from ctypes import PYFUNCTYPE, c_char_p, c_int, c_int32, c_void_p, py_object
from typing import Any

from ._lib import call, quick
from ._tensor import Tensor, tensor_result
from ._types import device as Device

# major version -> name of a capsule, and its name once a consumer has taken the tensor
NAMES = {1: (b"dltensor_versioned", b"used_dltensor_versioned"), 0: (b"dltensor", b"used_dltensor")}
DLTENSOR, USED_DLTENSOR = map(c_char_p, NAMES[0])
OLD = c_int32(0)
import_dlpack = quick.tt_tensor_from_dlpack
DELETER = {1: 16, 0: 56}  # major version -> offset of the deleter in DLManagedTensor(Versioned)
FLAGS, IS_COPIED = 24, 2  # offset of DLManagedTensorVersioned.flags; DLPACK_FLAG_BITMASK_IS_COPIED
DEVICES = {"cpu": 1, "cuda": 2, "ext": 12}  # DLDeviceType


class Address(c_void_p):
    """A returned pointer. It is a subclass because ctypes does not convert those to int."""


def api(name: str, returns: Any, *takes: Any) -> Any:
    """Loads a function of Python's C API."""
    return PYFUNCTYPE(returns, *takes)((name, ctypes.pythonapi))


new_capsule = api("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
is_valid = api("PyCapsule_IsValid", c_int, py_object, c_char_p)
pointer = api("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
# Without argument types, whose conversions take 100 ns a call: capsules are passed as py_object,
# names, which NAMES keeps alive, as c_char_p.
capsule_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
capsule_pointer.restype = Address
set_capsule_name = ctypes.pythonapi["PyCapsule_SetName"]
# (capsule, major version) of those that are not released. A destructor written in Python could run
# while another exception is being handled, so sweep() takes its place.
capsules: list[tuple[Any, int]] = []


def sweep(*_: Any) -> None:
    """Releases the tensors of capsules that were destroyed without being consumed.

    The garbage collector calls it while there are capsules.
    """
    held = []
    while capsules:
        capsule, major = capsules.pop()
        name = NAMES[major][0]
        if sys.getrefcount(capsule) > 2:
            held.append((capsule, major))
        elif is_valid(capsule, name):
            managed = pointer(capsule, name)
            deleter: Any = c_void_p.from_address(managed + DELETER[major]).value
            PYFUNCTYPE(None, c_void_p)(deleter)(managed)
    capsules.extend(held)
    if not held and sweep in gc.callbacks:
        gc.callbacks.remove(sweep)


def dlpack_device(t: Tensor) -> tuple[int, int]:
    """Returns (DLDeviceType, index): see Tensor.__dlpack_device__."""
    if t.device.type not in DEVICES:
        raise BufferError(f"__dlpack__: no memory that others can read on {t.device}")
    return DEVICES[t.device.type], t.device.index or 0


LEGACY_STREAM = 1  # what DLPack and CUDA call a device's default stream
NO_STREAM = -1  # the consumer orders its work by itself


def order_consumer(t: Tensor, stream: int | None) -> None:
    """Makes a stream of a consumer wait for what tt has computed so far on the device of t."""
    from .cuda.streams import ExternalStream, current_stream

    if stream == 0:  # DLPack: it could mean either default stream
        raise BufferError("__dlpack__: stream is 0: must be 1, 2, -1 or an address")
    if stream != NO_STREAM:
        consumer = ExternalStream(LEGACY_STREAM if stream is None else stream, t.device)
        consumer.wait_stream(current_stream(t.device))


def to_dlpack(
    t: Tensor, stream: int | None, max_version: Any, dl_device: Any, copy: bool | None
) -> Any:
    """Returns a capsule over the memory of t: see Tensor.__dlpack__."""
    if t.requires_grad:
        raise BufferError("__dlpack__: the tensor requires a gradient; use x.detach()")
    if dl_device is not None and tuple(map(int, dl_device)) != dlpack_device(t):
        raise BufferError(
            f"__dlpack__: the tensor is on {t.device}, not on device {tuple(dl_device)}; "
            "copy it there first"
        )
    major = 1 if max_version is not None and max_version[0] >= 1 else 0
    if not (major or t._is_writable()):
        raise BufferError(
            "__dlpack__: the memory is read-only, which a capsule without version cannot say"
        )
    shared = t.clone() if copy else t
    if t.device.type == "cuda":
        order_consumer(shared, stream)
    managed: Any = c_void_p()
    call("tt_tensor_to_dlpack", shared, c_int32(major), ctypes.byref(managed))
    if copy and major:
        ctypes.c_uint64.from_address(managed.value + FLAGS).value |= IS_COPIED
    sweep()
    capsule = new_capsule(managed, NAMES[major][0], None)
    capsules.append((capsule, major))
    if sweep not in gc.callbacks:
        gc.callbacks.append(sweep)
    return capsule


def producer_device(producer: Any) -> tuple[int, int]:
    """Returns (DLDeviceType, index) of an object with __dlpack__."""
    ask = getattr(producer, "__dlpack_device__", None)
    kind, index = ask() if ask else (DEVICES["cpu"], 0)
    return int(kind), int(index)


def from_dlpack(
    ext_tensor: Any, *, device: Device | str | None = None, copy: bool | None = None
) -> Tensor:
    """Returns a tensor over the memory of an object with __dlpack__, or of a DLPack capsule.

    device: moves the tensor there. copy: True asks the producer for a copy, False forbids one.
    """
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        options: dict[str, Any] = {} if copy is None else {"copy": copy}
        kind, index = producer_device(ext_tensor)
        if kind == DEVICES["cuda"]:
            from .cuda.streams import current_stream

            options["stream"] = current_stream(index).cuda_stream
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 1), **options)
        except TypeError:  # a producer of DLPack before 1.0
            options.pop("copy", None)
            capsule = ext_tensor.__dlpack__(**options)
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(
            "from_dlpack(): argument must have __dlpack__ or be a DLPack capsule, "
            f"not {type(ext_tensor).__name__}"
        )
    for major, (name, used) in NAMES.items():
        if is_valid(capsule, name):
            address = c_void_p(pointer(capsule, name))
            result = tensor_result("tt_tensor_from_dlpack", address, c_int32(major))
            set_capsule_name(py_object(capsule), c_char_p(used))
            return result.to(device) if device is not None else result
    raise ValueError(
        "from_dlpack(): the capsule holds no DLPack tensor, or somebody has taken it already"
    )
