"""The names of tt.ao.quantization, as torch.quantization has those of torch.ao.quantization."""
from __future__ import annotations

from .ao.quantization import *  # noqa: F403
from .ao.quantization import __all__ as __all__


def __dir__() -> list[str]:
    return __all__
