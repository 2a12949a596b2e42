"""Puts the operators on Tensor: methods, and Python's own operators by a path of their own, which `a + b` needs."""
from ctypes import byref, c_double, c_void_p

from . import _ops
from ._convert import is_number, number_tensor
from ._lib import fail, lib, local
from ._tensor import Tensor

_new = object.__new__

for _name, _function in _ops.PLACES["Tensor"].items():
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, _function)


def direct(name):
    """A binary operator: straight to C for two tensors, and for a float."""
    call, with_float, general = getattr(lib, "tt_" + name), getattr(_ops, f"tt_{name}_f64", None), getattr(_ops, name)
    number = float if with_float else None

    def operator(self, other):
        kind = type(other)
        if kind is Tensor:
            h = c_void_p()
            if call(local.ctx, self._h, other._h, byref(h)):
                fail()
        elif kind is number:
            h = c_void_p()
            if with_float(local.ctx, self._h, c_double(other), byref(h)):
                fail()
        else:
            return general(self, other) if isinstance(other, Tensor) or is_number(other) else NotImplemented
        t = _new(Tensor)
        t._h = h
        return t
    return operator


def binary(general):
    """self comes first."""
    def operator(self, other):
        if not isinstance(self, Tensor):
            raise TypeError(f"an operator of Tensor needs a Tensor, not {type(self).__name__}")
        return general(self, other) if isinstance(other, Tensor) or is_number(other) else NotImplemented
    return operator


def reflected(general):
    """other (a number or a tensor) comes first."""
    def operator(self, other):
        first = other if isinstance(other, Tensor) else number_tensor(other, self) if is_number(other) else None
        return NotImplemented if first is None or self._h is None else general(first, self)
    return operator


def tolerant(general):
    """Kinds of arguments that general does not take are somebody else's."""
    def operator(self, other):
        try:
            return general(self, other)
        except TypeError:
            return NotImplemented
    return operator


def floor_div(self, other):
    return _ops.div(self, other, rounding_mode="floor")


def swapped_pow(self, other):
    return _ops.pow(other, self)


for _name in ("add", "sub", "mul", "pow", "matmul", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name}__", direct(_name))
for _dunder, _name in (("add", "add_"), ("sub", "sub_"), ("mul", "mul_"), ("truediv", "div_"), ("pow", "pow_")):
    setattr(Tensor, f"__i{_dunder}__", binary(getattr(_ops, _name)))

Tensor.__truediv__ = Tensor.__div__ = binary(_ops.div)
Tensor.__floordiv__ = binary(floor_div)
Tensor.__radd__ = binary(_ops.add)
Tensor.__rmul__ = binary(_ops.mul)
Tensor.__rsub__ = tolerant(_ops.rsub)
Tensor.__rtruediv__ = Tensor.__rdiv__ = reflected(_ops.div)
Tensor.__rfloordiv__ = reflected(floor_div)
for _dunder, _name in (("mod", "remainder"), ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
                       ("lshift", "bitwise_left_shift"), ("rshift", "bitwise_right_shift")):
    setattr(Tensor, f"__{_dunder}__", binary(getattr(_ops, _name)))
    setattr(Tensor, f"__r{_dunder}__", reflected(getattr(_ops, _name)))
    setattr(Tensor, f"__i{_dunder}__", binary(getattr(_ops, _name + "_")))
Tensor.__ifloordiv__ = binary(_ops.floor_divide_)
Tensor.__rpow__ = tolerant(swapped_pow)
Tensor.__rmatmul__ = reflected(_ops.matmul)
Tensor.__neg__ = _ops.neg
Tensor.__pos__ = lambda self: self
Tensor.__invert__ = _ops.bitwise_not
Tensor.__hash__ = object.__hash__  # __eq__ compares elements; a tensor is a key by identity
