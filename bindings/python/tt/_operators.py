"""Puts the operators on Tensor.

Methods are loaded when they are first used. Python's own operators, such as `a + b`, are put on at once.
"""
from __future__ import annotations

from . import _ops
from ._arithmetic import OPERATORS
from ._tensor import Tensor, classed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class LazyMethod:
    """Replaces itself, on first use, by the operator's function as a method of Tensor."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        function = _ops.find("Tensor", self.name)
        setattr(Tensor, self.name, function)
        return function.__get__(owner, kind)


for _name in _ops.PLACES["Tensor"].split():
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, LazyMethod(_name))
for _name, _method in OPERATORS.items():
    setattr(Tensor, _name, _method)


# ---- subclasses ----


def keep_class(cls: type[Tensor]) -> None:
    """Makes the results of a subclass's Python operators be of the subclass.

    Those of functions and methods are already: see _convert.keeps.
    """
    for name in (*OPERATORS, "__getitem__", "new_tensor"):
        if name not in vars(cls):
            setattr(cls, name, class_keeper(name))


def class_keeper(name: str) -> Callable[..., Any]:
    """Returns a method that calls Tensor's and gives the result the class of self."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return classed(getattr(Tensor, name)(self, *args, **kwargs), type(self))

    method.__name__ = name
    return method
