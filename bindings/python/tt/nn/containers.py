"""Containers: modules of modules, and lists of parameters."""
from collections import OrderedDict
from operator import index

from .module import Module
from .parameter import Parameter


class Identity(Module):
    """Its input. Takes and ignores any arguments."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Sequential(Module):
    """Modules in turn: Sequential(a, b, …) or Sequential(OrderedDict(name=a, …))."""

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else ((str(i), m) for i, m in enumerate(args))
        for name, m in named:
            self.add_module(name, m)

    def forward(self, input):
        for m in self._modules.values():
            input = m(input)
        return input

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, i):
        items = list(self._modules.items())
        return type(self)(OrderedDict(items[i])) if isinstance(i, slice) else items[i][1]

    def __setitem__(self, i, module):
        setattr(self, list(self._modules)[i], module)

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for m in modules:
            self.append(m)
        return self


class ModuleList(Module):
    """A list of modules."""

    def __init__(self, modules=None):
        super().__init__()
        self.extend(modules or ())

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, i):
        items = list(self._modules.values())
        return type(self)(items[i]) if isinstance(i, slice) else items[i]

    def __setitem__(self, i, module):
        self._modules[str(range(len(self))[index(i)])] = module

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for m in modules:
            self.append(m)
        return self

    def insert(self, i, module):
        items = list(self)
        items.insert(i, module)
        self._modules.clear()
        self.extend(items)


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules):
        for name, m in modules.items() if hasattr(modules, "items") else modules:
            self[name] = m

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, name):
        return name in self._modules

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        self.add_module(name, module)

    def __delitem__(self, name):
        del self._modules[name]

    def keys(self):
        return self._modules.keys()

    def values(self):
        return self._modules.values()

    def items(self):
        return self._modules.items()


class ParameterList(Module):
    """A list of parameters."""

    def __init__(self, values=None):
        super().__init__()
        self.extend(values or ())

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())

    def __getitem__(self, i):
        return list(self._parameters.values())[i]

    def __setitem__(self, i, value):
        setattr(self, str(range(len(self))[index(i)]), value if isinstance(value, Parameter) else Parameter(value))

    def append(self, value):
        self.register_parameter(str(len(self)), value if isinstance(value, Parameter) else Parameter(value))
        return self

    def extend(self, values):
        for v in values:
            self.append(v)
        return self


class ParameterDict(Module):
    """Parameters by name."""

    def __init__(self, parameters=None):
        super().__init__()
        for name, value in (parameters or {}).items():
            self[name] = value

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters)

    def __contains__(self, name):
        return name in self._parameters

    def __getitem__(self, name):
        return self._parameters[name]

    def __setitem__(self, name, value):
        setattr(self, name, value if isinstance(value, Parameter) else Parameter(value))

    def keys(self):
        return self._parameters.keys()

    def values(self):
        return self._parameters.values()

    def items(self):
        return self._parameters.items()
