"""Containers: modules of modules, and lists and dicts of parameters."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import index
from typing import Any, ItemsView, Iterator, KeysView, SupportsIndex, ValuesView

from .._hints import Self
from .._class_name import class_name
from .._tensor import Tensor
from .module import Module
from .parameter import Parameter


class Identity(Module):
    """Returns its input. The constructor ignores its arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Container(Module):
    """The base of lists and dicts, whose items are child modules or parameters."""

    @property
    def _items(self) -> dict[str, Any]:
        """The items by name. Changes go through _put and delattr."""
        return self._modules

    def _put(self, name: str, value: Any) -> None:
        self.add_module(name, value)

    def __len__(self) -> int:
        return len(self._items)


class ListContainer(Container):
    """A container with items named "0", "1", …"""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if values is None else values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def _position(self, i: SupportsIndex) -> int:
        """Returns the position of an item, which may be counted from the end."""
        position, n = index(i), len(self)
        if not -n <= position < n:
            raise IndexError(f"{self._get_name()}: index {position} is out of range: it has {n}")
        return position % n

    def __getitem__(self, i: Any) -> Any:
        """Returns an item for an int, a container of the same class for a slice."""
        items = list(self._items.values())
        return type(self)(items[i]) if isinstance(i, slice) else items[self._position(i)]

    def __setitem__(self, i: int, value: Any) -> None:
        self._put(list(self._items)[self._position(i)], value)

    def __delitem__(self, i: int | slice) -> None:
        items = list(self)
        del items[i if isinstance(i, slice) else self._position(i)]
        self._replace(items)

    def _replace(self, values: Iterable[Any]) -> None:
        """Replaces all items."""
        values = list(values)
        for name in list(self._items):
            delattr(self, name)
        self.extend(values)

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
        if not isinstance(values, Iterable):
            raise TypeError(
                f"{self._get_name()}.extend takes an iterable, not {class_name(values)}"
            )
        for value in list(values):  # a copy: it may be self
            self.append(value)
        return self

    def insert(self, i: int, value: Any) -> Self:
        """Inserts an item before the i-th. Returns self."""
        items = list(self)
        if i:
            self._position(i - 1 if i > 0 else i)  # it may be the end
        items.insert(i, value)
        self._replace(items)
        return self

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class DictContainer(Container):
    """A container with items named by the user."""

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        if values is not None:
            self.update(values)

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
        if name not in self._items:
            raise KeyError(name)
        delattr(self, name)

    def pop(self, name: str) -> Any:
        """Removes and returns an item."""
        value = self[name]
        del self[name]
        return value

    def clear(self) -> None:
        """Removes all items."""
        for name in list(self._items):
            del self[name]

    def keys(self) -> KeysView[str]:
        return self._items.keys()

    def values(self) -> ValuesView[Any]:
        return self._items.values()

    def items(self) -> ItemsView[str, Any]:
        return self._items.items()


class OfParameters(Container):
    """A container of parameters. Other tensors become parameters; other objects are kept."""

    _names: dict[str, None]  # of the items, in their order

    def __init__(self, values: Any = None) -> None:
        self.__dict__["_names"] = {}
        super().__init__(values)

    @property
    def _items(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def _put(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        if name in self._names and not isinstance(value, Parameter):
            super().__delattr__(name)  # which keeps the place of the name
        setattr(self, name, value)
        self._names[name] = None

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self._names.pop(name, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self._get_name()} has no forward: it cannot be called")

    def extra_repr(self) -> str:
        """Returns a line for each item, indented as PyTorch's."""
        lines = []
        for name, x in self._items.items():
            text = f"Object of type: {type(x).__name__}"
            if isinstance(x, Tensor):
                size = "x".join(map(str, x.shape))
                text = f"Parameter containing: [{self._shown_dtype(x)} of size {size}]"
            lines.append(f"  ({name}): {text}")
        return "\n".join(lines)

    def _shown_dtype(self, x: Tensor) -> str:
        return str(x.dtype)


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

    def __add__(self, others: Iterable[Any]) -> Self:
        if not isinstance(others, Iterable):
            raise ValueError(f"a Sequential can be added to modules, not to {class_name(others)}")
        return super().__add__(others)

    def __mul__(self, times: int) -> Self:
        """Returns a Sequential that calls the modules of self several times in turn."""
        return self._of(list(self) * repetitions(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        return self.extend(list(self) * (repetitions(times) - 1))

    def _of(self, values: Iterable[Any]) -> Self:
        return type(self)(*values)


def repetitions(times: int) -> int:
    """Checks the factor of a Sequential."""
    if not isinstance(times, int):
        raise TypeError(f"a Sequential can be multiplied by an int, not by {class_name(times)}")
    if times <= 0:
        raise ValueError(f"a Sequential is multiplied by {times}: must be positive")
    return times


class ModuleList(ListContainer):
    """A list of modules. It has no forward of its own."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__(modules)

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

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__(modules)


class ParameterList(OfParameters, ListContainer):
    """A list of parameters. Tensors that are added become parameters."""

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds parameters, tensors or other objects at the end. Returns self."""
        if isinstance(values, Tensor):
            raise TypeError("ParameterList.extend takes an iterable of tensors, not a Tensor")
        return super().extend(values)


class ParameterDict(OfParameters, DictContainer):
    """A dict of parameters. Tensors that are added become parameters."""

    def __init__(
        self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None
    ) -> None:
        super().__init__(parameters)

    def _shown_dtype(self, x: Tensor) -> str:
        return x.type()

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds the items of a dict, or (name, item) pairs; those of a plain dict sorted by
        name, as in PyTorch."""
        is_plain = isinstance(values, Mapping) and not isinstance(values, OrderedDict)
        items = dict(values).items()
        for name, value in sorted(items) if is_plain else items:
            self[name] = value

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
        name = next(reversed(self._names))
        return name, self.pop(name)

    def copy(self) -> Self:
        """Returns another container with the same parameters."""
        return type(self)(OrderedDict(self._items))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> Self:
        """Returns a new container with a parameter of `default` for each name."""
        return type(self)(OrderedDict.fromkeys(keys, default))

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._names)

    def __or__(self, other: ParameterDict) -> Self:
        merged = self.copy()
        merged.update(other.items())
        return merged

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other.items())
        return self
