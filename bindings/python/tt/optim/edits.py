"""Changes of an optimizer's groups and lists of parameters by the application."""
from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from .native import NativeOptimizer

CHANGING = (
    "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort"
)


class EditedList(list[Any]):
    """The groups of an optimizer, or the parameters of a group. C takes over a change when the
    optimizer is used next."""

    def __init__(self, optimizer: NativeOptimizer, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self._optimizer = optimizer

    def __reduce__(self) -> Any:
        return list, (list(self),)


def changing(name: str) -> Any:
    method = getattr(list, name)

    @wraps(method)
    def changed(self: EditedList, *args: Any, **kwargs: Any) -> Any:
        self._optimizer._unsettled = True
        return method(self, *args, **kwargs)

    return changed


for name in CHANGING.split():
    setattr(EditedList, name, changing(name))
