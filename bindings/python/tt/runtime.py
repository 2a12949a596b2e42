"""The library's memory, devices, threads and dispatch."""
from __future__ import annotations

from contextlib import contextmanager
from ctypes import CFUNCTYPE, c_char_p, c_int32, c_void_p
from typing import Any, Callable, Iterator

from ._handles import ctx_isa, device_count, live, load_cuda, memory_stats, set_memory_limit
from ._handles import synchronize, trim
from ._hooks import guarded
from ._lib import call, local

__all__ = [
    "ctx_isa",
    "device_count",
    "instruction_set",
    "live",
    "load_cuda",
    "memory_stats",
    "set_memory_limit",
    "synchronize",
    "trace_dispatch",
    "trim",
]
INSTRUCTION_SETS = {1: "baseline", 2: "avx2", 3: "avx512"}


def instruction_set() -> str:
    """Returns the instruction set of the kernels in use: "baseline", "avx2" or "avx512"; on ARM
    "baseline", "sve256" (64-bit) or "neon" (32-bit)."""
    from ._handles import build_info

    name = INSTRUCTION_SETS[ctx_isa()]
    if name != "avx2":
        return name
    return next(isa for isa in ("avx2", "sve256", "neon") if isa in build_info())


@contextmanager
def trace_dispatch(see: Callable[[str, str, int], Any]) -> Iterator[None]:
    """Calls see(operator, slot, depth) before every operator that this thread runs in the block.

    If `see` raises, it is not called again, and its exception is raised at the end of the block.
    """
    raised: list[Any] = []

    @CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_int32)
    def trace(_user: Any, op: bytes, slot: bytes, depth: int) -> None:
        if not raised and guarded(lambda: see(op.decode(), slot.decode(), depth)):
            raised.append(local.raised)
            local.raised = None

    call("tt_ctx_trace_dispatch", trace, None)
    try:
        yield
    finally:
        call("tt_ctx_trace_dispatch", None, None)
    if raised:
        raise raised[0]


def __dir__() -> list[str]:
    return __all__
