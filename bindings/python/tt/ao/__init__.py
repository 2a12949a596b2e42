"""Quantisation, with the names of torch.ao."""
from __future__ import annotations

from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import quantization as quantization

__all__ = ["quantization"]


def __getattr__(name: str) -> Any:
    """Imports quantization on first use."""
    if name != "quantization":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return __all__
