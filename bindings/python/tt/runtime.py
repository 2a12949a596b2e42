"""The library's memory, devices and threads, and what it does."""
from contextlib import contextmanager
from ctypes import CFUNCTYPE, c_char_p, c_int32, c_void_p

from ._handles import (
    ctx_isa,
    device_count,
    live,
    load_cuda,
    memory_stats,
    set_memory_limit,
    synchronize,
    trim,
)  # noqa: F401
from ._hooks import guarded
from ._lib import call, local


def instruction_set():
    """What kernels are used: baseline, avx2 or avx512."""
    return (None, "baseline", "avx2", "avx512")[ctx_isa()]


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
