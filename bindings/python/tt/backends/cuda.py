"""Switches of PyTorch's CUDA backend, which have no effect in tt."""
from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

from ..cuda import is_available

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

__all__ = [
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_flash_attention_available",
    "preferred_blas_library",
    "preferred_linalg_library",
    "sdp_kernel",
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


enable_math_sdp = enable_mem_efficient_sdp = enable_cudnn_sdp = enable_flash_sdp


def flash_sdp_enabled() -> bool:
    """Returns True: tt has one kernel of scaled_dot_product_attention, which is always used."""
    return True


math_sdp_enabled = mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def is_flash_attention_available() -> bool:
    """Returns whether there is a CUDA device."""
    return is_available()


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Returns whether there is a CUDA device."""
    return is_available()


can_use_efficient_attention = can_use_flash_attention


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Accepts the implementations of scaled_dot_product_attention for the block: tt has one."""
    yield


def preferred_linalg_library(backend: str | None = None) -> str:
    """Accepts a library; tt chooses between its kernels and cuSOLVER. Returns "default"."""
    return "default"


preferred_blas_library = preferred_linalg_library
