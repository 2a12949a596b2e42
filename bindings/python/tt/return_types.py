"""The named tuples that operators with several results return, with the names of PyTorch."""
from __future__ import annotations

from typing import Any

from . import _ops

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    """Returns the class of an operator's results, such as max or linalg_svd."""
    try:
        getattr(_ops, name)  # loads the operators of its family
        return _ops.result_classes[name]
    except (AttributeError, KeyError):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return __all__
