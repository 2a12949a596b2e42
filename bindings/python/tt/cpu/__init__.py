"""The CPU as a device, with the names of torch.cpu."""
from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import amp as amp

__all__ = [
    "Event",
    "Stream",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Returns True."""
    return True


def is_initialized() -> bool:
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


class Stream:
    """The order of operators on the CPU, which is that of their calls."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: object) -> None:
        """Does nothing."""

    def record_event(self, event: object = None) -> None:
        """Does nothing."""

    def wait_event(self, event: object) -> None:
        """Does nothing."""


class Event:
    """A point in the order of operators, which are complete when it is recorded."""

    def query(self) -> bool:
        """Returns True."""
        return True

    def record(self, stream: object = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def wait(self, stream: object = None) -> None:
        """Does nothing."""


streams = [Stream()]  # the last one is the current one


def current_stream(device: object = None) -> Stream:
    """Returns the stream of the innermost block of stream()."""
    return streams[-1]


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Makes a stream the current one in a block, unless it is None."""
    streams.append(streams[-1] if stream is None else stream)
    try:
        yield
    finally:
        streams.pop()


if not TYPE_CHECKING:

    def __getattr__(name):
        if name != "amp":
            raise AttributeError(f"module 'tt.cpu' has no attribute '{name}'")
        return import_module(".amp", __name__)


def __dir__() -> list[str]:
    return __all__
