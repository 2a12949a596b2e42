"""Switches of PyTorch's CUDA backend, which have no effect in tt."""
from __future__ import annotations

from types import SimpleNamespace

from ..cuda import is_available

__all__ = [
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
]
matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=False,
    allow_bf16_reduced_precision_reduction=False,
)


def is_built() -> bool:
    """Returns whether tt's library for CUDA devices can be used on this machine."""
    return is_available()


def enable_flash_sdp(enabled: bool) -> None:
    """Does nothing: tt has one kernel of scaled_dot_product_attention."""


enable_math_sdp = enable_mem_efficient_sdp = enable_flash_sdp


def flash_sdp_enabled() -> bool:
    """Returns True: tt has one kernel of scaled_dot_product_attention, which is always used."""
    return True


math_sdp_enabled = mem_efficient_sdp_enabled = flash_sdp_enabled
