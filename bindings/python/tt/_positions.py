"""x[i] with i in a tensor, while a function is recorded or exported."""
from __future__ import annotations

import threading
from typing import Any, Sequence

__all__ = ["Positions", "is_number", "state"]
PLAIN = (int, slice, type(None), type(Ellipsis))


class State(threading.local):
    """noted: of the function that this thread captures, if it does."""

    noted: Positions | None = None


state = State()


def is_number(item: Any) -> bool:
    """Returns whether item is a position in a tensor."""
    from ._tensor import Tensor

    if not isinstance(item, Tensor) or item.ndim:
        return False
    return item.dtype.kind == "i" and item.dtype.name != "uint8"


class Positions:
    """The tensors that a captured function reads at positions in tensors.

    as_tensor: such a position stays a tensor, which each run reads. x[i] is a copy then, where it
    else is a view, so this is right only as long as neither x nor x[i] is written.
    """

    def __init__(self, as_tensor: bool) -> None:
        self.as_tensor = as_tensor
        self.stays = False
        self.tensors: dict[int, tuple[Any, int]] = {}

    def __enter__(self) -> Positions:
        self.outer, state.noted = state.noted, self
        return self

    def __exit__(self, *unused: Any) -> None:
        state.noted = self.outer

    def takes(self, x: Any, keys: Sequence[Any]) -> bool:
        """Returns whether the positions among keys stay tensors, and notes x if there are any."""
        self.stays = False  # an index before may have failed
        others = [k for k in keys if not is_number(k)]
        if len(others) == len(keys) or not all(type(k) in PLAIN for k in others):
            return False
        self.note(x)
        self.stays = self.as_tensor
        return self.as_tensor

    def take(self, result: Any) -> None:
        """Notes the result of the index that `takes` saw last, if its positions stay tensors."""
        if self.stays:
            self.note(result)
        self.stays = False

    def note(self, x: Any) -> None:
        """Notes a tensor that must not be written: x, or x[i]."""
        self.tensors.setdefault(id(x), (x, x._version))

    def are_written(self) -> bool:
        """Returns whether one of the tensors has been written since it was noted."""
        return any(x._version != version for x, version in self.tensors.values())

    def are_in(self, results: Sequence[Any]) -> bool:
        """Returns whether one of the results is in the memory of one of the tensors."""
        memories = {x._storage_data() for x, _ in self.tensors.values()}
        return any(x._storage_data() in memories for x in results)
