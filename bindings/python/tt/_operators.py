"""Puts the operators on Tensor: methods when they are asked for, and Python's own operators by a path of their own, which `a + b` needs."""
from importlib import import_module

from . import _ops
from ._arithmetic import OPERATORS
from ._tensor import Tensor, classed

# module -> its functions that are methods of Tensor
METHODS = {
    "_dlpack": "__dlpack__ __dlpack_device__",
    "_handles": "register_hook register_post_accumulate_grad_hook",
    "_numbers": "allclose equal",
    "_numpy": "numpy",
}


class Method:
    """A function that becomes a method of Tensor when it is asked for; module: where it is, None: among the operators."""

    __slots__ = ("name", "module")

    def __init__(self, name, module=None):
        self.name, self.module = name, module

    def __get__(self, owner, kind=None):
        function = (
            getattr(import_module("." + self.module, __package__), self.name)
            if self.module
            else _ops.find("Tensor", self.name)
        )
        setattr(Tensor, self.name, function)
        return function.__get__(owner, kind)


for _name in _ops.PLACES["Tensor"].split():
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, Method(_name))
for _module, _names in METHODS.items():
    for _name in _names.split():
        setattr(Tensor, _name, Method(_name, _module))


for _name, _method in OPERATORS.items():
    setattr(Tensor, _name, _method)
Tensor.__pos__ = lambda self: self


# ---- subclasses ----


def keep_class(cls):
    """Gives a subclass of Tensor operators whose results are of that class, as those of functions and methods are (_convert.keeps)."""
    for name in (*OPERATORS, "__getitem__", "new_tensor"):
        if name not in vars(cls):
            setattr(cls, name, keeper(name))


def keeper(name):
    def method(self, *args, **kwargs):
        return classed(getattr(Tensor, name)(self, *args, **kwargs), type(self))

    method.__name__ = name
    return method
