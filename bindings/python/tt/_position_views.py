"""Results that are views at positions in tensors, of functions that are recorded."""
from __future__ import annotations

from typing import Any, Sequence

from ._positions import Copy, Positions
from ._tensor import Tensor
from ._tree import Place, mapped

__all__ = ["View", "without_copies"]


class View(Place):
    """Stands for a result that is source[key], or a view of it.

    source, key: with places for tensors. geometry: size, stride and the offset from the first
    element of source[key]; None for all of source[key]. records: it requires a gradient.
    """

    def __init__(self, source: Place, key: Any, geometry: Any, records: bool) -> None:
        super().__init__(-1)
        self.source, self.key, self.geometry, self.records = source, key, geometry, records

    def of(self, tensors: Sequence[Any]) -> Any:
        source = self.source.of(tensors)
        if not self.records:
            source = source.detach()
        x = source[tuple(k.of(tensors) if isinstance(k, Place) else k for k in self.key)]
        if self.geometry is None:
            return x
        size, stride, offset = self.geometry
        return x.as_strided(size, stride, x.storage_offset() + offset)

    def identity(self) -> Any:
        key = (k.identity() if isinstance(k, Place) else (type(k), str(k)) for k in self.key)
        return View, self.source.identity(), *key, self.geometry, self.records


def without_copies(structure: Any, positions: Positions, tensors: list[Any]) -> tuple[Any, bool]:
    """Replaces the tensors of a structure by places, and what is in the memory of a copy by views
    of its source. Appends the tensors that these need to `tensors`.

    Returns the structure, and whether each such result became a view.
    """
    copies = {copy.copy._storage_data(): copy for copy in positions.copies}
    copies.pop(0, None)  # without elements
    all_views = True

    def place(x: Any) -> Any:
        nonlocal all_views
        if not isinstance(x, Tensor):
            return x
        copy = copies.get(x._storage_data())
        if copy is not None:
            found = view(x, copy)
            if found is not None:
                return found
            all_views = False
        tensors.append(x)
        return Place(len(tensors) - 1)

    def view(x: Tensor, copy: Copy) -> View | None:
        whole = copy.copy
        geometry: Any = tuple(x.shape), tuple(x.stride()), x.storage_offset()
        if geometry == (tuple(whole.shape), tuple(whole.stride()), whole.storage_offset()):
            geometry = None
        elif not copy.exact:
            return None
        if x.dtype != whole.dtype:
            return None
        key = tuple(map(place, copy.key))
        return View(place(copy.source), key, geometry, x.requires_grad)

    return mapped(structure, place), all_views
