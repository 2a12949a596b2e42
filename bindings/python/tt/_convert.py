"""Checks the arguments of operators and converts them for C.

A wrong kind is a TypeError before C is called. Most functions take the value, the operator's name
and the argument's name. Structs are packed into bytes, which ctypes passes as a pointer: a third of
the cost of a ctypes.Structure.
"""
from __future__ import annotations

import array
import numbers
import warnings
from ctypes import addressof, byref, c_char_p, c_double, c_int32, c_int64, c_uint64
from math import inf
from operator import index
from struct import error as struct_error
from typing import Any, Callable, Sequence, TypeVar

from ._class_name import class_name
from . import errors
from ._index import INT_MAX, INT_MIN
from ._interception import state, unknown_operand
from ._types import BY_NAME, BY_PYTHON_TYPE, PACK, Defaults, device, dtype
from ._lib import Handle, fail, lib, packed_address
from ._tensor import SCALAR, Tensor, classed, from_address, tensor_result
from ._tensor import SMALL as INTS

T = TypeVar("T")

NULL = packed_address(0)
UINT64_CODE = c_int32(BY_NAME["uint64"].code)


def wrong_kind(op: str, arg: str, want: str, got: object) -> TypeError:
    """Returns the TypeError of an argument of the wrong kind."""
    return TypeError(f"{op}(): argument '{arg}' must be {want}, not {class_name(got)}")


def keeps(x: object) -> bool:
    """Returns whether operators on x return its subclass of Tensor."""
    return isinstance(x, Tensor) and x._keeps_class and not state.subclass_off


def instance(cls: type[T], x: Any, op: str, arg: str) -> T:
    """Returns x, which must be of this class."""
    if isinstance(x, cls):
        return x
    raise wrong_kind(op, arg, cls.__name__, x)


def optional_tensor(x: Any, op: str, arg: str) -> Tensor | None:
    return x if x is None else instance(Tensor, x, op, arg)


def tensor_address(x: Any, op: str, arg: str) -> int | None:
    """Returns the field of an optional tensor in an options struct."""
    return 0 if optional_tensor(x, op, arg) is None else x._address


def tensor_list(xs: Any, op: str, arg: str, optional: bool = False) -> tuple[Any, ...]:
    """Returns a tuple of tensors for pointers(). optional: items may be None."""
    if not isinstance(xs, (tuple, list)):
        raise wrong_kind(op, arg, "tuple of Tensors", xs)
    xs = tuple(xs)
    for i, x in enumerate(xs):
        if not (isinstance(x, Tensor) or optional and x is None):
            raise wrong_kind(op, f"{arg}[{i}]", "Tensor", x)
    return xs


def pointers(xs: Sequence[Tensor | None]) -> bytes:
    """Returns an array of pointers to tensors, which the caller keeps alive."""
    return b"".join([x._as_parameter_ if x is not None else NULL for x in xs])


def tensors_field(xs: Any, op: str, arg: str, keep: list[Any]) -> tuple[int, int]:
    """Returns the pointer and length of a list of tensors for an options struct. `keep` owns it."""
    if xs is None:
        return list_field(None, op, arg, keep)
    tensors = tensor_list(xs, op, arg, True)
    return list_field([0 if x is None else x._address for x in tensors], op, arg, keep)


def several(x: Any) -> Any:
    """Returns a tensor in a tuple, any other value unchanged."""
    return (x,) if isinstance(x, Tensor) else x


def length(xs: Sequence[Any], *others: Sequence[Any] | None) -> c_int64:
    """Returns the length of xs. The other lists must have the same length or be None."""
    n = len(xs)
    if others and any(x is not None and len(x) != n for x in others):
        lengths = ", ".join(str(len(x)) for x in others if x is not None)
        raise errors.InvalidArgumentError(
            f"lists of {n} and of {lengths} items must be equally long"
        )
    return INTS[n] if n < 65 else c_int64(n)


# ---- kinds, where they choose between overloads ----


def is_number(x: Any) -> bool:
    return (
        type(x) in (int, float)
        or isinstance(x, numbers.Number)
        or type(x).__module__ == "numpy"
        and getattr(x, "ndim", 1) == 0
    )


def operand(x: Any) -> Any:
    """Returns an operand of a Python operator: a tensor or a number.

    A NumPy array becomes a tensor. Returns NotImplemented for any other type.
    """
    if isinstance(x, Tensor) or is_number(x):
        return x
    if type(x).__module__ == "numpy" and hasattr(x, "__array_interface__"):
        from ._create import as_tensor

        return as_tensor(x, device="cpu")
    return NotImplemented


def operate(function: Callable[..., Any], self: Any, other: Any, **more: Any) -> Any:
    """Returns function(self, other) for a Python operator.

    Returns NotImplemented for an unsupported operand, so that Python tries the other operand.
    """
    instance(Tensor, self, function.__name__, "self")
    found = operand(other)
    if found is NotImplemented:
        return unknown_operand(getattr(Tensor, function.__name__, function), self, other)
    return like(function(self, found, **more), (self, found))


def operate_swapped(function: Callable[..., Any], self: Any, other: Any, **more: Any) -> Any:
    """Returns function(other, self); see operate."""
    found = operand(other)
    if found is NotImplemented:
        return unknown_operand(function, other, self)
    return like(function(found, self, **more), (self, found))


def is_int(x: Any) -> bool:
    return type(x) is int or hasattr(x, "__index__") and not isinstance(x, (bool, Tensor))


def no_overload(op: str, *given: object) -> TypeError:
    """Returns the TypeError for arguments that match no overload."""
    kinds = ", ".join(map(class_name, given))
    return TypeError(f"{op}(): no form takes arguments of these kinds: ({kinds})")


# ---- numbers ----


class TooLargeError(errors.InvalidArgumentError, OverflowError):
    """An int does not fit 64 bits."""


class WideBoundError(TooLargeError, TypeError):
    """An int fits only uint64, and the operator takes such numbers as tensors alone."""


def integer(x: Any, op: str, arg: str, top: int = INT_MAX) -> int:
    """Returns an int of 64 bits. A bool is not accepted."""
    if type(x) is int and INT_MIN <= x <= INT_MAX:
        return x
    if isinstance(x, bool) or not hasattr(x, "__index__"):
        raise wrong_kind(op, arg, "int", x)
    is_one = not isinstance(x, Tensor) or x.numel() == 1 and x.dtype.kind == "i"
    if is_one and INT_MIN <= index(x) <= top:
        return index(x)
    kind = TooLargeError if is_one else errors.InvalidArgumentError
    raise kind(f"{op}: {arg} is {x}: must be one integer of 64 bits")


def uint64(x: Any, op: str, arg: str) -> c_uint64:
    """Returns an unsigned int of 64 bits. Negative ints wrap around."""
    return c_uint64(integer(x, op, arg, 2**64 - 1))


# Functions that read tensors in the place of numbers, without their gradients
DETACHING = ("linspace", "logspace")


def holds_number(x: Any, op: str) -> bool:
    """Returns whether x is a 0-dim tensor that may be a number: its gradient would be lost."""
    return isinstance(x, Tensor) and not x.ndim and (not x.requires_grad or op in DETACHING)


def real(x: Any, op: str, arg: str) -> float:
    """Returns a float."""
    if isinstance(x, (int, float, numbers.Real)) or holds_number(x, op):
        return float(x)
    raise wrong_kind(op, arg, "float", x)


def boolean(x: Any, op: str, arg: str) -> int:
    """Returns 0 or 1 for a bool of Python or NumPy."""
    if type(x).__name__ in ("bool", "bool_"):
        return int(bool(x))
    raise wrong_kind(op, arg, "bool", x)


# Functions in which an int that does not fit int64 is a float, unless the result has integers
RANGES = {"linspace", "logspace"}
READ_AS_FLOATS = RANGES | {"pad", "scalar_tensor"}


def dtype_of(x: Any) -> Any:
    """Returns the dtype of a tensor, or the one that x stands for."""
    found = getattr(x, "dtype", x)
    return BY_PYTHON_TYPE.get(found) if isinstance(found, type) else found


def scalar(x: Any, op: str, arg: str, beside: Any = None) -> bytes:
    """Returns a tt_scalar: a number whose kind takes part in type promotion.

    beside: the tensor or dtype that decides what an int that does not fit int64 becomes.
    """
    kind = type(x)
    if kind is float:
        return SCALAR.pack(3, 0, 0, x, 0.0)
    if kind is int:
        if not INT_MIN <= x <= INT_MAX:
            return large_scalar(x, op, arg, dtype_of(beside))
        return SCALAR.pack(2, 0, x, 0.0, 0.0)
    if isinstance(x, Tensor) and x.ndim:
        raise errors.ShapeError(f"{op}: {arg} is {list(x.shape)}: must be a number or 0-dim")
    of_numpy = kind.__module__ == "numpy" and hasattr(x, "item") and getattr(x, "ndim", 1) == 0
    if holds_number(x, op) or of_numpy:
        return scalar(x.item(), op, arg, beside)
    if isinstance(x, numbers.Integral):
        return SCALAR.pack(1 if kind is bool else 2, 0, integer(int(x), op, arg), 0.0, 0.0)
    if isinstance(x, numbers.Complex):
        return SCALAR.pack(3 if isinstance(x, numbers.Real) else 4, 0, 0, x.real, x.imag)
    raise wrong_kind(op, arg, "Number", x)


def large_scalar(x: int, op: str, arg: str, beside: dtype | None) -> bytes:
    """Returns the tt_scalar of an int that does not fit int64: a float where the result is
    floating, the bits of a uint64 that is stored."""
    in_uint64 = INT_MAX < x < 2**64
    if beside is None:
        if x > 0 and op in RANGES:  # C knows the dtype and refuses a float that does not fit it
            return SCALAR.pack(3, 0, 0, float(x), 0.0)
    elif op in READ_AS_FLOATS:
        if beside.kind != "i":
            return SCALAR.pack(3, 0, 0, float(x), 0.0)
        if in_uint64 and beside.name == "uint64":
            return SCALAR.pack(2, 0, x - 2**64, 0.0, 0.0)
    elif in_uint64 and beside.kind in "fc":
        return SCALAR.pack(3, 0, 0, float(x), 0.0)
    elif in_uint64 and beside.name == "uint64" and op.startswith(("clamp", "clip")):
        raise WideBoundError(
            f"{op}: {arg} is {x}: the other bound must be an int that uint64 holds"
        )
    elif in_uint64 and bounds_above(op, arg):
        return SCALAR.pack(2, 0, INT_MAX, 0.0, 0.0)
    return SCALAR.pack(2, 0, integer(x, op, arg), 0.0, 0.0)


def scalar_field(x: Any, op: str, arg: str, beside: Any = None) -> tuple[Any, ...]:
    """Returns the fields of a tt_scalar in an options struct."""
    return SCALAR.unpack(scalar(x, op, arg, beside)) if x is not None else (0, 0, 0, 0.0, 0.0)


def bounds_above(op: str, arg: str) -> bool:
    """Returns whether the number is an upper bound, for which the largest int of 64 bits may
    stand."""
    return arg == "max" and op.startswith(("clamp", "clip"))


# Functions that write a number into tensors, or bound elements by it from below
REFUSING = {"fill_", "full", "full_like", "index_fill", "index_fill_", "masked_fill"}
REFUSING |= {"masked_fill_", "new_full", "scatter", "scatter_", "clamp_min", "clamp_min_"}
# Comparisons: an int that fits only uint64 is inf there, above every integer of other dtypes
COMPARING = {name + end for name in ("eq", "ne", "lt", "le", "gt", "ge") for end in ("", "_")}
# Functions in which an int that fits only uint64 wraps around where it stands for the first operand
WRAPPING = {"add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "rsub"}
WRAPPING |= {"bitwise_and", "bitwise_or", "bitwise_xor"}


def number_form(
    f64: Any,
    i64: Any,
    other: Any,
    x: Any,
    op: str,
    arg: str,
    beside: Any = None,
    floats: bool = False,
) -> tuple[Any, Any]:
    """Returns the C function for a number of x's kind, and x converted for it.

    beside: the other operand, a tensor or a dtype. floats: the result is floating. As in PyTorch,
    an int that fits only uint64 becomes a float beside floating-point numbers; it wraps around
    beside integers, but is refused where it is stored or a lower bound. Unlike in PyTorch, it is
    above all integers of other dtypes in comparisons, which take inf.
    """
    kind = type(x)
    if kind is float:
        return f64, c_double(x)
    if kind is int:
        if INT_MAX < x < 2**64 and beside is not None:
            dtype = dtype_of(beside)
            if floats or dtype.kind in "fc":
                return f64, c_double(float(x))
            if op in COMPARING and dtype.name != "uint64":
                return f64, c_double(inf)
            if dtype.name == "uint64" and op.startswith(("clamp_min", "clamp_max")):
                return tensor_form(f64), uint64_tensor(x)
            if bounds_above(op, arg):
                return i64, c_int64(INT_MAX)
            if dtype.name == "uint64" or (dtype.kind == "i" and op not in REFUSING):
                return i64, c_int64(x - 2**64)
        return i64, c_int64(integer(x, op, arg))
    return other, scalar(x, op, arg)


def uint64_tensor(x: int) -> Tensor:
    """Returns a 0-dim tensor of an int that fits uint64."""
    bits = x - 2**64 if x > INT_MAX else x
    return tensor_result("tt_scalar_tensor", SCALAR.pack(2, 0, bits, 0.0, 0.0), UINT64_CODE)


def tensor_form(f64: Any) -> Any:
    """Returns the C function for a tensor in the place of the float that f64 takes."""
    return getattr(lib, f64.__name__.replace("_f64", ""))


# ---- lists of ints ----


def int_list(x: Any, op: str, arg: str) -> tuple[bytes, c_int64]:
    """Returns (int64 array, its length) of an int, a tuple or a list. None is the empty list."""
    if type(x) is not tuple:
        if isinstance(x, (list, tuple)):
            x = tuple(x)
        else:
            x = () if x is None else (integer(x, op, arg),)
    try:
        return PACK[len(x)](*x), INTS[len(x)]
    except (struct_error, IndexError):
        items = array.array("q", [integer(i, op, arg) for i in x])
        return items.tobytes(), c_int64(len(x))


def list_field(x: Any, op: str, arg: str, keep: list[Any]) -> tuple[int, int]:
    """Returns the pointer and length of an int or a list of ints for an options struct.

    keep holds its memory.
    """
    if x is None:
        return 0, 0
    keep.append(array.array("q", int_list(x, op, arg)[0]))
    return keep[-1].buffer_info()


def left_out(first: Any, *given: Any) -> tuple[Any, ...]:
    """Returns the arguments, with `first` inserted if the first one is missing, as in
    arange(end)."""
    there = [x for x in given if x is not None]
    if len(there) == len(given):
        return given
    return (first, *there, *[None] * (len(given) - 1 - len(there)))


def gathered(args: tuple[Any, ...], named: Any, op: str, arg: str) -> tuple[Any, ...]:
    """Returns the list of a call like view(2, 3), view((2, 3)) or view(size=(2, 3))."""
    if named is not None:
        if args:
            raise TypeError(f"{op}(): argument '{arg}' is given twice")
        args = (named,)
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        return tuple(args[0])
    if not args:
        raise TypeError(f"{op}(): argument '{arg}' is missing")
    return args


# ---- dtypes, devices, texts ----


def dtype_code(x: Any, op: str, arg: str) -> int:
    """Returns the tt_dtype; 0 for None."""
    if x is None:
        return 0
    if isinstance(x, type):
        x = BY_PYTHON_TYPE.get(x, x)
    return instance(dtype, x, op, arg).code


def device_field(x: Any, op: str, arg: str) -> tuple[int, int]:
    """Returns the two fields of a tt_device; (0, 0) for None."""
    if x is None:
        return 0, 0
    if isinstance(x, str):
        x = device(x)
    return instance(device, x, op, arg).code, x.index or 0


def place(x: Any) -> Any:
    """Returns a tt_device by reference; None for NULL."""
    from ._structs import struct

    if x is None:
        return None
    return byref(struct("tt_device")(*device_field(device(x), "device", "device")))


def generator_handle(x: Any, op: str, arg: str) -> Handle:
    from .random import DefaultGenerator, Generator, thread_generator

    if isinstance(x, DefaultGenerator):
        return thread_generator()
    return instance(Generator, x, op, arg)


def text(x: Any, op: str, arg: str) -> bytes:
    """Returns a str as UTF-8."""
    if "\0" in instance(str, x, op, arg):
        raise errors.InvalidArgumentError(f"{op}: {arg} contains a zero character")
    return x.encode()


def texts(xs: Sequence[str], op: str, arg: str) -> Any:
    """Returns an array of strings."""
    return (c_char_p * len(xs))(*(text(x, op, arg) for x in xs))


def texts_field(xs: Any, op: str, arg: str, keep: list[Any]) -> tuple[int, int]:
    """Returns the pointer and length of a list of strings for an options struct. `keep` owns it."""
    if xs is None:
        return 0, 0
    keep.append(texts(xs, op, arg))
    return addressof(keep[-1]), len(xs)


def one_of(values: dict[str, int], x: Any, op: str, arg: str) -> int:
    """Returns the value of an enum by its name. None is "none"."""
    name = "none" if x is None else instance(str, x, op, arg)
    if name not in values:
        raise errors.InvalidArgumentError(
            f"{op}: {arg} is '{name}': must be one of {', '.join(values)}"
        )
    return values[name]


def legacy_reduction(size_average: bool | None, reduce: bool | None) -> Any:
    """Returns the reduction that PyTorch's former flags of losses stand for. None is True."""
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def sparse_product(op: str, arg: str, a: Any, b: Any) -> Tensor:
    """Returns the product of two matrices of which one is a SparseTensor. Raises TypeError that
    names `arg` if none is."""
    from . import sparse

    if not isinstance(a, sparse.SparseTensor) and not isinstance(b, sparse.SparseTensor):
        raise wrong_kind(op, arg, "Tensor", b if isinstance(a, Tensor) else a)
    return sparse.mm(a, b)


# ---- numbers in the place of tensors ----

KINDS = "bifc"  # of dtypes and of tt_scalar, in the order of promotion
WIDEST = (1, 6, 10, 12)  # tt_dtype of bool, int64, float64, complex128


def number_operand(
    op: str, arg: str, x: Any, *others: Any, alone: bool, fit: bool = False, floats: bool = False
) -> Tensor:
    """Returns a 0-dim tensor for a number, where PyTorch accepts one for a tensor.

    In promotion only its kind counts. It keeps all digits.
    others: the other operands. alone: accepts x even if none of them is a tensor.
    fit: x must fit the dtype of the first tensor, except that of 16-bit floats, where it may become
        inf; or the default dtype, where x decides.
    floats: the result is floating.
    """
    first = next((t for t in others if isinstance(t, Tensor)), None)
    if not is_number(x) or first is None and not alone:
        raise wrong_kind(op, arg, "Tensor", x)
    if type(x) is int and INT_MAX < x < 2**64 and first is not None:
        wraps = first.dtype.name == "uint64" if fit else op in WRAPPING and not floats
        if wraps and first.dtype.kind == "i":
            x -= 2**64
        elif not fit or first.dtype.kind in "fc":
            x = float(x)
    number = scalar(x, op, arg)
    kind = number[0] - 1
    if first is None or kind > KINDS.index(first.dtype.kind):
        return of_default_dtype(number, fit)
    if fit and first.dtype.name not in ("float16", "bfloat16"):
        tensor_result("tt_scalar_tensor", number, c_int32(first.dtype.code))
    t = tensor_result("tt_scalar_tensor", number, c_int32(WIDEST[kind]))
    return t if first.ndim else t.to(first.dtype)


def of_default_dtype(number: bytes, fit: bool) -> Tensor:
    """Returns a 0-dim tensor of the default dtype of a tt_scalar's kind. A number that is too large
    for it is inf, or refused if it must fit."""
    try:
        return tensor_result("tt_scalar_tensor", number, c_int32(0))
    except errors.InvalidArgumentError:
        if fit:
            raise
        kind = number[0] - 1
        default = Defaults.complex if KINDS[kind] == "c" else Defaults.float
        return tensor_result("tt_scalar_tensor", number, c_int32(WIDEST[kind])).to(default)


# ---- results ----


def like(result: Any, tensors: Any) -> Any:
    """Returns a result in the class of the first tensor whose subclass is kept."""
    for t in tensors:
        if keeps(t):
            return classed(result, type(t))
    return result


def out_tensors(xs: Any, n: int, op: str) -> list[Tensor]:
    """Returns the n tensors of an out= argument."""
    if not isinstance(xs, (tuple, list)) or len(xs) != n:
        raise wrong_kind(op, "out", f"tuple of {n} Tensors", xs)
    return [instance(Tensor, x, op, "out") for x in xs]


def may_hold(dtype: Any, result: Any) -> bool:
    """Returns whether out= of this dtype can hold the result: its kind must not be lower."""
    return KINDS.index(result.kind) <= KINDS.index(dtype.kind)


def written(result: Any, out: Any, op: str, exact: bool = False) -> Any:
    """Copies a result, or several, into out= and returns out.

    As in PyTorch, out is resized to the result's shape, with a warning unless it was empty. Values
    are converted to out's dtype, whose kind (bool, integer, floating, complex) must not be lower.
    exact: out must have the result's dtype, as integers beside another result always must, and
    the elements beside indices.
    """
    if isinstance(out, (tuple, list)):
        integers = [one.dtype.name == "int64" for one in result]
        exact = exact or any(integers[1:2])
        for i, (one, into) in enumerate(zip(result, out)):
            written(one, into, op, exact or i > 0 and integers[i])
        return out
    if result.requires_grad or out.requires_grad:
        raise errors.AutogradError(f"{op}: out= and its operands must not require gradients")
    same = result.dtype is out.dtype
    if not same and (exact or not may_hold(out.dtype, result.dtype)):
        raise errors.DtypeError(f"{op}: out is {out.dtype}, the result is {result.dtype}")
    if any(not stride and size > 1 for size, stride in zip(out.shape, out.stride())):
        raise errors.InvalidArgumentError(
            f"{op}: out has shape {list(out.shape)} and strides {out.stride()}: some elements "
            "share an address: clone it first"
        )
    if out.shape != result.shape:
        if out.numel():
            warnings.warn(
                f"{op}: out is {list(out.shape)} and is resized to {list(result.shape)}: give a "
                "tensor of that shape, or an empty one",
                stacklevel=4,
            )
        out.resize_(result.shape)
    return out.copy_(result)


def refit(out: Any, make: Callable[[], Any], op: str, exact: bool = False) -> Any:
    """Handles a failed call that writes into out. Writes make()'s result into out if only its shape
    or dtype was wrong or it is an input of the operator; raises the error otherwise."""
    try:
        fail()
    except (errors.ShapeError, errors.DtypeError, errors.InvalidArgumentError) as error:
        text = str(error)
        if "_into: dst is " not in text and "dst shares memory" not in text:
            raise
    return written(make(), out, op, exact)


def unreduced(x: Tensor, out: Tensor | None, op: str) -> Any:
    """Returns whether each element differs from 0: any() and all() over an empty list of
    dimensions."""
    nonzero = x != 0
    if x.dtype.name == "uint8":
        nonzero = nonzero.to(x.dtype)
    return nonzero if out is None else written(nonzero, out, op, out.dtype.name != "uint8")


def check_layout(op: str, layout: Any) -> None:
    """Raises for any layout but strided."""
    if getattr(layout, "name", layout) != "strided":
        raise errors.UnimplementedError(
            f"{op}: layout is {layout}: must be tt.strided; tt.sparse makes sparse matrices"
        )


def columns_of(function: Any, x: Tensor) -> tuple[Tensor, ...]:
    """Returns the columns of function(x); a 0-dim x counts as one element."""
    from . import _ops

    return _ops.unbind(function(x if x.ndim else _ops.reshape(x, (1,))), 1)


def gradients_of(handles: Any, inputs: Any, materialize: bool) -> tuple[Any, ...]:
    """Returns the gradients of inputs; None, or zeros if materialize, for those without one."""
    from . import _ops

    def missing(x: Tensor) -> Tensor | None:
        return _ops.zeros_like(x) if materialize else None

    return tuple(from_address(h) if h else missing(x) for h, x in zip(handles, inputs))
