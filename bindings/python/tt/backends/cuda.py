"""Which libraries compute on CUDA devices, and in which precision, with PyTorch's switches."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

from .. import _cuda_math
from ..cuda import is_available

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
    "preferred_fft_library",
    "preferred_linalg_library",
    "sdp_kernel",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
]


class Matmul:
    """Switches of products."""

    allow_fp16_reduced_precision_reduction = False  # accepted: sums are in float32
    allow_bf16_reduced_precision_reduction = False

    @property
    def allow_tf32(self) -> bool:
        """Whether cuBLASLt may round factors of float32 to TF32; at first False."""
        return _cuda_math.chosen["matmul_tf32"]

    @allow_tf32.setter
    def allow_tf32(self, on: bool) -> None:
        _cuda_math.set_precision("high" if on else "highest")


matmul = Matmul()


def is_built() -> bool:
    """Returns whether tt's library for CUDA devices can be used on this machine."""
    return is_available()


def enable_flash_sdp(enabled: bool) -> None:
    """Does nothing: tt's kernel of scaled_dot_product_attention serves where cuDNN does not."""


enable_math_sdp = enable_mem_efficient_sdp = enable_flash_sdp


def enable_cudnn_sdp(enabled: bool) -> None:
    """Sets whether cuDNN may compute scaled_dot_product_attention; at first True."""
    _cuda_math.choose(cudnn_attention=bool(enabled))


def flash_sdp_enabled() -> bool:
    """Returns True: tt's kernel of scaled_dot_product_attention serves where cuDNN does not."""
    return True


math_sdp_enabled = mem_efficient_sdp_enabled = flash_sdp_enabled


def cudnn_sdp_enabled() -> bool:
    """Returns whether cuDNN may compute scaled_dot_product_attention."""
    return _cuda_math.chosen["cudnn_attention"]


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
    """Sets in a block whether cuDNN may compute scaled_dot_product_attention; where it does not,
    tt's kernel does."""
    with _cuda_math.choice(cudnn_attention=bool(enable_cudnn)):
        yield


def preferred(field: str, backend: str | None) -> str:
    """Sets whether a library serves, if a backend is given. Returns "tt" or "default"."""
    if backend is not None:
        _cuda_math.choose(**{field: backend != "tt"})
    return "default" if _cuda_math.chosen[field] else "tt"


def preferred_linalg_library(backend: str | None = None) -> str:
    """Chooses the kernels of tt alone ("tt") or with any other name cuSOLVER where it serves, for
    decompositions of matrices. Returns the choice, "tt" or "default"."""
    return preferred("cusolver", backend)


def preferred_blas_library(backend: str | None = None) -> str:
    """Chooses the kernels of tt alone ("tt") or with any other name cuBLASLt where it serves, for
    products. Returns the choice, "tt" or "default"."""
    return preferred("cublaslt", backend)


def preferred_fft_library(backend: str | None = None) -> str:
    """Chooses the kernels of tt alone ("tt") or with any other name cuFFT where it serves, for
    Fourier transforms. Returns the choice, "tt" or "default"."""
    return preferred("cufft", backend)
