"""The version and build settings of tt, with the API of torch.version."""
from __future__ import annotations

from ._lib import VERSION as __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
cuda: str | None = None  # kernels of CUDA devices are a library of their own: runtime.load_cuda
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: str | None = None
debug = False


def __dir__() -> list[str]:
    return __all__
