"""Containers: modules of modules, and lists and dicts of parameters."""
from __future__ import annotations

from collections import OrderedDict
from itertools import groupby
from operator import index

from .module import Module
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView

    from typing_extensions import Self

    from .._tensor import Tensor


class Identity(Module):
    """Returns its input. The constructor ignores its arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Container(Module):
    """The base of lists and dicts, whose items are child modules or parameters."""

    _group = "_modules"

    @property
    def _items(self) -> dict[str, Any]:
        return self.__dict__[self._group]

    def _put(self, name: str, value: Any) -> None:
        self.add_module(name, value)

    def __len__(self) -> int:
        return len(self._items)


class ListContainer(Container):
    """A container with items named "0", "1", …"""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def __getitem__(self, i: Any) -> Any:
        """Returns an item for an int, a container of the same class for a slice."""
        items = list(self._items.values())
        return type(self)(items[i]) if isinstance(i, slice) else items[i]

    def __setitem__(self, i: int, value: Any) -> None:
        self._put(list(self._items)[index(i)], value)

    def __delitem__(self, i: int | slice) -> None:
        items = list(self)
        del items[i]
        self._items.clear()
        self.extend(items)

    def pop(self, i: int | slice = -1) -> Any:
        """Removes and returns an item."""
        value = self[i]
        del self[i]
        return value

    def __add__(self, others: Iterable[Any]) -> Self:
        return self._of([*self, *others])

    def __iadd__(self, others: Iterable[Any]) -> Self:
        return self.extend(others)

    def _of(self, values: Iterable[Any]) -> Self:
        """Returns another container with these items."""
        return type(self)(values)

    def append(self, value: Any) -> Self:
        """Adds an item at the end. Returns self."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds items at the end. Returns self."""
        for value in values:
            self.append(value)
        return self

    def insert(self, i: int, value: Any) -> Self:
        """Inserts an item before the i-th. Returns self."""
        items = list(self)
        items.insert(i, value)
        self._items.clear()
        return self.extend(items)


class DictContainer(Container):
    """A container with items named by the user."""

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self.update(values or {})

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds the items of a dict, or (name, item) pairs."""
        for name, value in dict(values).items():
            self[name] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._put(name, value)

    def __delitem__(self, name: str) -> None:
        del self._items[name]

    def pop(self, name: str) -> Any:
        """Removes and returns an item."""
        return self._items.pop(name)

    def clear(self) -> None:
        """Removes all items."""
        self._items.clear()

    def keys(self) -> KeysView[str]:
        return self._items.keys()

    def values(self) -> ValuesView[Any]:
        return self._items.values()

    def items(self) -> ItemsView[str, Any]:
        return self._items.items()


class OfParameters(Container):
    """A container of parameters. Other tensors become parameters."""

    _group = "_parameters"

    def _put(self, name: str, value: Any) -> None:
        setattr(self, name, value if isinstance(value, Parameter) else Parameter(value))

    def _printed(self) -> list[tuple[str, str]]:
        shown = []
        for name, p in self._items.items():
            size = "x".join(map(str, p.shape))
            shown.append((name, f"Parameter containing: [{p.dtype} of size {size}]"))
        return shown


class Sequential(ListContainer):
    """Calls its modules in order, each with the result of the previous one.

    Sequential(a, b, …) or Sequential(OrderedDict(name=a, …)).
    """

    def __init__(self, *args: Any) -> None:
        Module.__init__(self)
        named: Any = ((str(i), m) for i, m in enumerate(args))
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        for name, m in named:
            self.add_module(name, m)

    def forward(self, input: Any) -> Any:
        for m in self:
            input = m(input)
        return input

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return type(self)(OrderedDict(list(self._modules.items())[i]))
        return super().__getitem__(i)

    def _of(self, values: Iterable[Any]) -> Self:
        return type(self)(*values)


class ModuleList(ListContainer):
    """A list of modules. It has no forward of its own."""

    def _printed(self) -> list[tuple[str, str]]:
        """Prints equal neighbours once, as "(0-3): 4 x …"."""
        shown = []
        for text, group in groupby(super()._printed(), lambda row: row[1]):
            names = [name for name, _ in group]
            if len(names) == 1:
                shown.append((names[0], text))
            else:
                shown.append((f"{names[0]}-{names[-1]}", f"{len(names)} x {text}"))
        return shown


class ModuleDict(DictContainer):
    """A dict of modules. It has no forward of its own."""


class ParameterList(OfParameters, ListContainer):
    """A list of parameters. Tensors that are added become parameters."""


class ParameterDict(OfParameters, DictContainer):
    """A dict of parameters. Tensors that are added become parameters."""

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an item; default if there is none with this name."""
        return self._items.get(name, default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Returns an item; first adds default if there is none with this name."""
        if name not in self:
            self[name] = default
        return self[name]

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the item that was added last, as (name, item)."""
        return self._items.popitem()

    def copy(self) -> Self:
        """Returns another container with the same parameters."""
        return type(self)(self._items)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> Self:
        """Returns a new container with a parameter of `default` for each name."""
        return type(self)({name: default for name in keys})

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._items)

    def __or__(self, other: ParameterDict) -> Self:
        merged = self.copy()
        merged.update(other.items())
        return merged

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other.items())
        return self
