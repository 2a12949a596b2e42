"""The classes of results of functions that have several: return_types.max and its like."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    """Returns the class of a function's results."""
    from importlib import import_module

    from . import _ops

    if not name.startswith("_") and name in _ops.HOME:
        module = import_module("." + _ops.HOME[name], _ops.__name__)
        for made in (f"_r_{name}_dim", f"_r_{name}"):
            if hasattr(module, made):
                return getattr(module, made).__self__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
