"""cuDNN, which computes convolutions on CUDA devices where it is found, deterministic and without
TF32. The switches of PyTorch are accepted and ignored."""
from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

__all__ = [
    "allow_tf32",
    "benchmark",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "version",
]
enabled = False
benchmark = False
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    """Returns False."""
    return False


def version() -> None:
    """Returns None: tt does not use cuDNN."""


def is_acceptable(tensor: object) -> bool:
    """Returns False: tt does not use cuDNN."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Sets cuDNN's switches in a block, which has no effect."""
    yield
