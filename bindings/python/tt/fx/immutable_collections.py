"""Lists and dicts of the arguments of nodes, which change only by Node's methods."""
from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["immutable_dict", "immutable_list"]


def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises TypeError: arguments of nodes are immutable."""
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation: make a list or dict of your "
        "own, change it and assign it to the node's args or kwargs"
    )


class immutable_list(list):
    """A list that refuses changes."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = insert = refuse
    pop = remove = reverse = sort = refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that refuses changes."""

    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = refuse
    update = refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)
