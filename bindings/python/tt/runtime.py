"""The library's memory, devices and threads, and what it does."""
from contextlib import contextmanager
from ctypes import CFUNCTYPE, byref, c_char_p, c_int32, c_int64, c_void_p

from . import _types
from ._convert import integer
from ._hooks import guarded
from ._layouts import struct
from ._lib import call, fail, lib, local

ISAS = (None, "baseline", "avx2", "avx512")


def at(place):
    """A tt_device by reference; None: all, or the CPU."""
    if place is None:
        return None
    d = _types.device(place)
    return byref(struct("tt_device")(d.code, d.index or 0))


def memory_stats(device="cpu"):
    """Bytes in_use, reserved, peak and limit (0: none); live_tensors, live_nodes, live_handles."""
    found = struct("tt_memory_stats")()
    call("tt_memory", at(device), byref(found))
    return {name: getattr(found, name) for name, _ in found._fields_}


def set_memory_limit(bytes):
    """What the library may use; beyond it calls fail with MemoryError. 0: no limit."""
    call("tt_set_memory_limit", c_int64(integer(bytes, "set_memory_limit", "bytes")))


def trim():
    """Gives cached memory back to the system."""
    call("tt_trim")


def live():
    """What is alive, the most bytes first: dicts of kind, count, bytes, and of tensors dtype, device, shape, requires_grad. No other thread may
    compute meanwhile."""
    n, cap = c_int64(), 64
    while True:
        rows = (struct("tt_live_row") * cap)()
        if not lib.tt_runtime_live(local.ctx, rows, c_int64(cap), byref(n)):
            break
        if n.value <= cap:
            fail()
        cap = n.value
    out = []
    for r in rows[:n.value]:
        facts = {"kind": r.kind.decode(), "count": r.count, "bytes": r.bytes}
        if r.dtype:
            facts.update(dtype=_types.DTYPES[r.dtype], device=_types.device.of(r.device.type, r.device.index), shape=_types.Size(r.shape[:min(r.ndim, 8)]),
                         requires_grad=bool(r.requires_grad))
        out.append(facts)
    return out


def synchronize(device=None):
    """Waits for a device, or for all; what has failed there is raised here."""
    call("tt_synchronize", at(device))


def device_count(type="cuda"):
    """How many devices of this type there are."""
    n = c_int32()
    call("tt_device_count", c_int32(_types.device(type).code), byref(n))
    return n.value


def load_cuda(path=None):
    """Opens the library that computes on CUDA devices: libtt_cuda.so, or that at path."""
    call("tt_load_cuda", None if path is None else path.encode())


def instruction_set():
    """What kernels are used: baseline, avx2 or avx512."""
    n = c_int32()
    call("tt_ctx_isa", byref(n))
    return ISAS[n.value]


@contextmanager
def trace_dispatch(see):
    """with trace_dispatch(see): … calls see(operator, slot, depth) before every operator. An exception in it is raised at the end, and see sees no more."""
    raised = []

    @CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_int32)
    def tell(_user, op, slot, depth):
        if not raised and guarded(lambda: see(op.decode(), slot.decode(), depth)):
            raised.append(local.raised)
            local.raised = None
    call("tt_ctx_trace_dispatch", tell, None)
    try:
        yield
    finally:
        call("tt_ctx_trace_dispatch", None, None)
    if raised:
        raise raised[0]
