"""Functions of the modules of devices that tt does not support, tt.mps and tt.xpu."""
from __future__ import annotations

from typing import Any, NoReturn

from .errors import DeviceError


def is_available(*args: Any, **kwargs: Any) -> bool:
    """Returns False."""
    return False


def device_count(*args: Any, **kwargs: Any) -> int:
    """Returns 0."""
    return 0


def synchronize(*args: Any, **kwargs: Any) -> None:
    """Does nothing: there is no device."""


def refusing_function(module: str, name: str) -> Any:
    """Returns a function that raises DeviceError."""

    def raises(*args: Any, **kwargs: Any) -> NoReturn:
        raise DeviceError(f"{module}.{name}: there is no {module.upper()} device")

    raises.__name__ = name
    raises.__doc__ = "Raises DeviceError: there is no device."
    return raises
