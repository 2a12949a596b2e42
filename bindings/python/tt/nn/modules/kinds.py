"""Classes of PyTorch that layers derive from there, for isinstance."""
from __future__ import annotations

from abc import ABC
from typing import Any

from ... import nn


class Kind(ABC):
    """The base of some layers, for isinstance and issubclass."""


def kind(name: str, *layers: type) -> Any:
    """Returns a class of this name, of which the layers are subclasses."""
    made: Any = type(name, (Kind,), {"__doc__": Kind.__doc__})
    for layer in layers:
        made.register(layer)
    return made


def kind_of_dimensions(name: str, *beginnings: str) -> Any:
    """Returns the class of the layers with these beginnings of their names in 1 to 3 dimensions."""
    names = (f"{beginning}{n}d" for beginning in beginnings for n in (1, 2, 3))
    return kind(name, *(getattr(nn, each) for each in names if hasattr(nn, each)))
