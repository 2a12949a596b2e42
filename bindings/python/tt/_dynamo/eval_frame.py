"""The class of compiled modules, under PyTorch's name."""
from __future__ import annotations

from ..nn._compiled import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Returns True: tt.compile works everywhere."""
    return True


def __dir__() -> list[str]:
    return __all__
