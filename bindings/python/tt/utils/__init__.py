"""Tools around training: data loading. Modules are loaded when they are first used."""
from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import data as data

__all__ = ["data"]

if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'tt.utils' has no attribute '{name}'")
        return import_module("." + name, __name__)
