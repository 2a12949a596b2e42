"""torch.classes: the classes of PyTorch's C++ libraries, of which tt has none."""
from __future__ import annotations

from typing import Any

__all__ = ["load_library", "loaded_libraries"]
loaded_libraries: set[str] = set()


def load_library(path: str) -> None:
    """Raises OSError: libraries of PyTorch's classes need PyTorch's own C++."""
    raise OSError(
        f"classes.load_library: path is {path!r}: tt does not load PyTorch's C++ libraries"
    )


class ClassNamespace:
    """The classes of a namespace, of which there are none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(f"classes.{self.name}.{name}: no library has registered this class")


def __getattr__(name: str) -> ClassNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return ClassNamespace(name)


def __dir__() -> list[str]:
    return __all__
