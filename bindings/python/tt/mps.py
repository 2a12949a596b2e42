"""torch.mps. tt supports no Apple devices."""
from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]


def is_available() -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


def synchronize(device: object = None) -> None:
    """Does nothing: there is no device."""


def manual_seed(seed: int) -> None:
    """Does nothing: there is no device."""


def empty_cache() -> None:
    """Does nothing: there is no device."""


def __dir__() -> list[str]:
    return __all__
