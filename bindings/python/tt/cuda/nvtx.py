"""Ranges for NVIDIA's profilers, with the names of torch.cuda.nvtx: nothing is recorded. Use
tt.profiler."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg: str) -> int:
    """Does nothing. Returns 0."""
    return 0


def range_pop() -> int:
    """Does nothing. Returns 0."""
    return 0


def range_start(msg: str) -> int:
    """Does nothing. Returns 0."""
    return 0


def range_end(range_id: int) -> None:
    """Does nothing."""


def mark(msg: str) -> None:
    """Does nothing."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Does nothing around the block."""
    yield


def __dir__() -> list[str]:
    return __all__
