"""The CPU as a device, with the names of torch.cpu."""
from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import amp as amp

__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """Returns True."""
    return True


def device_count() -> int:
    """Returns 1."""
    return 1


def current_device() -> str:
    """Returns "cpu"."""
    return "cpu"


def set_device(device: object) -> None:
    """Does nothing: there is one CPU."""


def synchronize(device: object = None) -> None:
    """Does nothing: operators on the CPU are complete when they return."""


if not TYPE_CHECKING:

    def __getattr__(name):
        if name != "amp":
            raise AttributeError(f"module 'tt.cpu' has no attribute '{name}'")
        return import_module(".amp", __name__)


def __dir__() -> list[str]:
    return __all__
