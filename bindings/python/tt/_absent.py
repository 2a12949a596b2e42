"""PyTorch's names for features that tt lacks. Importing one works; using it raises."""
from __future__ import annotations

from .errors import UnimplementedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def absent_function(name: str, why: str) -> Any:
    """Returns a function that raises UnimplementedError with this name and reason."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnimplementedError(f"{name}: {why}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Raises UnimplementedError: {why}."
    return function


def absent_class(name: str, why: str) -> Any:
    """Returns a class that has no instances: its constructor raises."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnimplementedError(f"{name}: {why}")

    doc = f"Cannot be made: {why}."
    return type(name.rpartition(".")[2], (), {"__new__": __new__, "__doc__": doc})
