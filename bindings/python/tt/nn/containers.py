"""Containers: modules of modules, and lists of parameters."""
from collections import OrderedDict
from itertools import groupby
from operator import index

from .module import Module
from .parameter import Parameter


class Identity(Module):
    """Its input. Takes and ignores any arguments."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Items(Module):
    """What lists and dicts share: their items are children, or parameters."""

    group = "_modules"

    @property
    def items_(self):
        return self.__dict__[self.group]

    def put(self, name, value):
        self.add_module(name, value)

    def __len__(self):
        return len(self.items_)


class Listed(Items):
    """Items under the numbers 0, 1, …"""

    def __init__(self, values=None):
        super().__init__()
        self.extend(values or ())

    def __iter__(self):
        return iter(self.items_.values())

    def __getitem__(self, i):
        items = list(self.items_.values())
        return type(self)(items[i]) if isinstance(i, slice) else items[i]

    def __setitem__(self, i, value):
        self.put(list(self.items_)[index(i)], value)

    def __delitem__(self, i):
        items = list(self)
        del items[i]
        self.items_.clear()
        self.extend(items)

    def pop(self, i=-1):
        value = self[i]
        del self[i]
        return value

    def __add__(self, others):
        return self.of([*self, *others])

    def __iadd__(self, others):
        return self.extend(others)

    def of(self, values):
        """Another one with these items."""
        return type(self)(values)

    def append(self, value):
        self.put(str(len(self)), value)
        return self

    def extend(self, values):
        for v in values:
            self.append(v)
        return self

    def insert(self, i, value):
        items = list(self)
        items.insert(i, value)
        self.items_.clear()
        return self.extend(items)


class Named(Items):
    """Items under names."""

    def __init__(self, values=None):
        super().__init__()
        self.update(values or {})

    def update(self, values):
        for name, v in values.items() if hasattr(values, "items") else values:
            self[name] = v

    def __iter__(self):
        return iter(self.items_)

    def __contains__(self, name):
        return name in self.items_

    def __getitem__(self, name):
        return self.items_[name]

    def __setitem__(self, name, value):
        self.put(name, value)

    def __delitem__(self, name):
        del self.items_[name]

    def pop(self, name):
        return self.items_.pop(name)

    def clear(self):
        self.items_.clear()

    def keys(self):
        return self.items_.keys()

    def values(self):
        return self.items_.values()

    def items(self):
        return self.items_.items()


class OfParameters:
    """Items are parameters; other tensors are made such."""

    group = "_parameters"

    def put(self, name, value):
        setattr(self, name, value if isinstance(value, Parameter) else Parameter(value))

    def _printed(self):
        return [
            (name, f"Parameter containing: [{p.dtype} of size {'x'.join(map(str, p.shape))}]")
            for name, p in self.items_.items()
        ]


class Sequential(Listed):
    """Modules in turn: Sequential(a, b, …) or Sequential(OrderedDict(name=a, …))."""

    def __init__(self, *args):
        Module.__init__(self)
        named = (
            args[0].items()
            if len(args) == 1 and isinstance(args[0], OrderedDict)
            else ((str(i), m) for i, m in enumerate(args))
        )
        for name, m in named:
            self.add_module(name, m)

    def forward(self, input):
        for m in self:
            input = m(input)
        return input

    def __getitem__(self, i):
        return (
            type(self)(OrderedDict(list(self._modules.items())[i]))
            if isinstance(i, slice)
            else super().__getitem__(i)
        )

    def of(self, values):
        return type(self)(*values)


class ModuleList(Listed):
    """A list of modules."""

    def _printed(self):
        """Equal neighbours together."""
        groups = [
            [name for name, _ in group] + [text]
            for text, group in groupby(super()._printed(), lambda row: row[1])
        ]
        return [
            (names[0], text)
            if len(names) == 1
            else (f"{names[0]}-{names[-1]}", f"{len(names)} x {text}")
            for *names, text in groups
        ]


class ModuleDict(Named):
    """Modules by name."""


class ParameterList(OfParameters, Listed):
    """A list of parameters."""


class ParameterDict(OfParameters, Named):
    """Parameters by name."""
