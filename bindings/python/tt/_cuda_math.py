"""How CUDA devices compute: in which precision, whether with the same bits in every run, and by
which of NVIDIA's libraries. What PyTorch has several switches for is one struct of tt.h."""
from __future__ import annotations

from contextlib import contextmanager
from ctypes import byref
from typing import Iterator

from ._lib import call, settings
from ._structs import struct

ALL = (1 << 8) - 1  # bits of tt_cuda_math_opts.set

# What was chosen last, by the fields of tt_cuda_math_opts.
chosen = {
    "matmul_tf32": False,
    "conv_tf32": False,
    "deterministic": True,
    "cublaslt": True,
    "cudnn": True,
    "cudnn_attention": True,
    "cusolver": True,
    "cufft": True,
}
# PyTorch's switches for determinism -> whether they ask for it; one that was never set is absent.
deterministic_switches: dict[str, bool] = {}
precision = "highest"  # of float32 in products, as set_float32_matmul_precision names it


def choose(**values: bool) -> None:
    """Sets fields for this thread and for threads that first use tt later."""
    chosen.update(values)
    opts = struct("tt_cuda_math_opts")(set=ALL, **chosen)
    call("tt_ctx_set_cuda_math", byref(opts))
    settings["tt_ctx_set_cuda_math"] = (byref(opts),)


@contextmanager
def choice(**values: bool) -> Iterator[None]:
    """Sets fields in a block."""
    before = {name: chosen[name] for name in values}
    choose(**values)
    try:
        yield
    finally:
        choose(**before)


def set_deterministic(switch: str, on: bool) -> None:
    """Sets a switch. Sums may be added in any order once switches are set and none asks for
    determinism."""
    deterministic_switches[switch] = on
    choose(deterministic=any(deterministic_switches.values()))


def set_precision(name: str) -> None:
    """Sets the precision of float32 in products by its name."""
    global precision
    precision = name
    choose(matmul_tf32=name != "highest")
