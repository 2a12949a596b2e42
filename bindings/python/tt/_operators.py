"""Puts the operators on Tensor: methods when they are asked for, and Python's own operators by a path of their own, which `a + b` needs."""
from ctypes import byref, c_double
from importlib import import_module

from . import _ops
from ._convert import is_number, number_tensor
from ._lib import fail, lib, local
from ._tensor import Tensor, new


# module -> its functions that are methods of Tensor
METHODS = {
    "_dlpack": "__dlpack__ __dlpack_device__",
    "_handles": "register_hook register_post_accumulate_grad_hook",
    "_numpy": "numpy",
    "_printing": "__repr__",
}


class Method:
    """A function that becomes a method of Tensor when it is asked for; module: where it is, None: among the operators."""
    __slots__ = ("name", "module")

    def __init__(self, name, module=None):
        self.name, self.module = name, module

    def __get__(self, owner, kind=None):
        function = getattr(import_module("." + self.module, __package__), self.name) if self.module else _ops.find("Tensor", self.name)
        setattr(Tensor, self.name, function)
        return function.__get__(owner, kind)


for _name in _ops.PLACES["Tensor"].split():
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, Method(_name))
for _module, _names in METHODS.items():
    for _name in _names.split():
        setattr(Tensor, _name, Method(_name, _module))


def operator(name):
    """A function of _ops, found when it is first called."""
    def general(*args, **kwargs):
        return getattr(_ops, name)(*args, **kwargs)
    return general


def operand(x):
    """x if it is a tensor or a number, a tensor of it if it is a NumPy array; what is something else is asked itself."""
    if isinstance(x, Tensor) or is_number(x):
        return x
    if type(x).__module__ == "numpy" and hasattr(x, "__array_interface__"):
        from ._create import as_tensor
        return as_tensor(x)
    return NotImplemented


def direct(name):
    """A binary operator: straight to C for two tensors, and for a float."""
    call, with_float, general = getattr(lib, "tt_" + name), getattr(lib, f"tt_{name}_f64") if name != "matmul" else None, operator(name)
    number = float if with_float else None

    def method(self, other):
        kind = type(other)
        if kind is Tensor:
            t = new(Tensor)
            if call(local.ctx, self, other, byref(t)):
                fail()
            return t
        if kind is number:
            t = new(Tensor)
            if with_float(local.ctx, self, c_double(other), byref(t)):
                fail()
            return t
        other = operand(other)
        return other if other is NotImplemented else general(self, other)
    return method


def divide(self, other):
    """The same of div, which has options."""
    kind = type(other)
    if kind is Tensor or kind is float:
        t = new(Tensor)
        if lib.tt_div(local.ctx, self, other, None, byref(t)) if kind is Tensor else lib.tt_div_f64(local.ctx, self, c_double(other), None, byref(t)):
            fail()
        return t
    other = operand(other)
    return other if other is NotImplemented else _ops.div(self, other)


def binary(general):
    """self comes first."""
    def method(self, other):
        other = operand(other)
        return other if other is NotImplemented else general(self, other)
    return method


def reflected(general):
    """other (a number or a tensor) comes first."""
    def method(self, other):
        other = operand(other)
        return other if other is NotImplemented else general(other if isinstance(other, Tensor) else number_tensor(other, self), self)
    return method


def floor_div(self, other):
    return _ops.div(self, other, rounding_mode="floor")


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name}__", direct(_name))
for _dunder, _name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("pow", "pow"), ("matmul", "matmul"), ("mod", "remainder"),
                       ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"), ("lshift", "bitwise_left_shift"),
                       ("rshift", "bitwise_right_shift")):
    setattr(Tensor, f"__{_dunder}__", direct(_name))
    setattr(Tensor, f"__r{_dunder}__", reflected(operator(_name)))
    if _name != "matmul":
        setattr(Tensor, f"__i{_dunder}__", binary(operator(_name + "_")))

Tensor.__truediv__, Tensor.__rtruediv__, Tensor.__itruediv__ = divide, reflected(operator("div")), binary(operator("div_"))
Tensor.__div__, Tensor.__rdiv__ = Tensor.__truediv__, Tensor.__rtruediv__
Tensor.__radd__, Tensor.__rmul__, Tensor.__rsub__ = Tensor.__add__, Tensor.__mul__, binary(operator("rsub"))
Tensor.__rpow__ = binary(lambda self, other: _ops.pow(other, self))
Tensor.__floordiv__, Tensor.__rfloordiv__, Tensor.__ifloordiv__ = binary(floor_div), reflected(floor_div), binary(operator("floor_divide_"))
Tensor.__neg__, Tensor.__invert__, Tensor.__pos__ = operator("neg"), operator("bitwise_not"), lambda self: self
Tensor.__abs__ = operator("abs")
Tensor.__hash__ = object.__hash__  # __eq__ compares elements; a tensor is a key by identity
