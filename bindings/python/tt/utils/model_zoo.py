"""load_url, the former name of tt.hub.load_state_dict_from_url, and bars of progress."""
from __future__ import annotations

from typing import Any, Iterable, Iterator

from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url", "tqdm"]

try:
    from tqdm import tqdm  # type: ignore[import]
except ImportError:

    class tqdm:  # type: ignore[no-redef]
        """Stands for a bar of progress where the package tqdm is not installed."""

        def __init__(self, iterable: Iterable[Any] = (), **options: Any) -> None:
            self.iterable = iterable

        def update(self, n: float = 1) -> None:
            """Does nothing."""

        def close(self) -> None:
            """Does nothing."""

        def __iter__(self) -> Iterator[Any]:
            return iter(self.iterable)

        def __enter__(self) -> tqdm:
            return self

        def __exit__(self, *args: object) -> None:
            pass
