"""Arguments of operators: checks their kind (TypeError before C is called) and gives them the form that C reads.

Every function takes the value, the operator's name and the argument's name. Structs are packed into bytes, which ctypes passes as
a pointer: a third of the cost of a ctypes.Structure.
"""
import array
import numbers
from ctypes import addressof, byref, c_char_p, c_double, c_int32, c_int64, c_uint64
from operator import index
from struct import Struct
from struct import error as struct_error

from ._kinds import kind_name
from . import errors
from ._index import INT_MAX, INT_MIN
from ._lib import result
from ._types import BY_PYTHON_TYPE, PACK, device, dtype
from ._tensor import SCALAR, Tensor, classed, wrap
from ._tensor import SMALL as INTS

PLAIN = {Tensor}
POINTERS = [Struct(f"{n}P").pack for n in range(65)]


def wrong_kind(op, arg, want, got):
    """The TypeError of an argument of the wrong kind."""
    return TypeError(f"{op}(): argument '{arg}' must be {want}, not {kind_name(got)}")


def keeps(x):
    """Is x of a subclass of Tensor that results keep?"""
    return isinstance(x, Tensor) and x._keeps_class


def instance(kind, x, op, arg):
    """x, which must be of this class."""
    if isinstance(x, kind):
        return x
    raise wrong_kind(op, arg, kind.__name__, x)


def optional_tensor(x, op, arg):
    return x if x is None else instance(Tensor, x, op, arg)


def tensor_address(x, op, arg):
    """Of an optional tensor in an options struct."""
    return 0 if optional_tensor(x, op, arg) is None else x._address


def tensor_list(xs, op, arg, optional=False):
    """A tuple that keeps the tensors alive, for pointers()."""
    if not isinstance(xs, (tuple, list)):
        raise wrong_kind(op, arg, "tuple of Tensors", xs)
    xs = tuple(xs)
    for i, x in enumerate(xs):
        if not (isinstance(x, Tensor) or optional and x is None):
            raise wrong_kind(op, f"{arg}[{i}]", "Tensor", x)
    return xs


def pointers(xs):
    values = [x._address if x is not None else 0 for x in xs]
    return POINTERS[len(xs)](*values) if len(xs) < 65 else Struct(f"{len(xs)}P").pack(*values)


def tensors_field(xs, op, arg, keep):
    """The pointer and the length that a list of tensors has in an options struct; keep holds its memory."""
    return list_field(
        None
        if xs is None
        else [0 if x is None else x._address for x in tensor_list(xs, op, arg, True)],
        op,
        arg,
        keep,
    )


def several(x):
    """One tensor as a list of it."""
    return (x,) if isinstance(x, Tensor) else x


def length(xs, *others):
    """The number of xs, and of the other lists that go with it item by item."""
    n = len(xs)
    if others and any(x is not None and len(x) != n for x in others):
        raise errors.InvalidArgumentError(
            f"lists of {n} and of {', '.join(str(len(x)) for x in others if x is not None)} items must be equally long"
        )
    return INTS[n] if n < 65 else c_int64(n)


# ---- kinds, where they choose between forms ----


def is_number(x):
    return (
        type(x) in (int, float)
        or isinstance(x, numbers.Number)
        or type(x).__module__ == "numpy"
        and getattr(x, "ndim", 1) == 0
    )


def operand(self, x):
    """Of Python's operators of self: x if it is a tensor or a number, a tensor of it if it is a NumPy array; what is something else is asked itself."""
    instance(Tensor, self, "an operator", "self")
    if isinstance(x, Tensor) or is_number(x):
        return x
    if type(x).__module__ == "numpy" and hasattr(x, "__array_interface__"):
        from ._create import as_tensor

        return as_tensor(x)
    return NotImplemented


def is_int(x):
    return type(x) is int or hasattr(x, "__index__") and not isinstance(x, (bool, Tensor))


def no_overload(op, *given):
    kinds = ", ".join(map(kind_name, given))
    return TypeError(f"{op}(): no form takes arguments of these kinds: ({kinds})")


# ---- numbers ----


def integer(x, op, arg, top=INT_MAX):
    """An int that fits 64 bits; bool is no int here."""
    if type(x) is int and INT_MIN <= x <= INT_MAX:
        return x
    if isinstance(x, bool) or not hasattr(x, "__index__"):
        raise wrong_kind(op, arg, "int", x)
    single = not isinstance(x, Tensor) or x.numel() == 1 and x.dtype.kind == "i"
    if single and INT_MIN <= index(x) <= top:
        return index(x)
    raise errors.InvalidArgumentError(f"{op}: {arg} is {x}: must be one integer of 64 bits")


def uint64(x, op, arg):
    """Negative ints wrap."""
    return c_uint64(integer(x, op, arg, 2**64 - 1))


def real(x, op, arg):
    """A float."""
    if isinstance(x, (int, float, numbers.Real)) or (isinstance(x, Tensor) and not x.ndim):
        return float(x)
    raise wrong_kind(op, arg, "float", x)


def boolean(x, op, arg):
    if type(x).__name__ in ("bool", "bool_"):  # NumPy's too
        return int(bool(x))
    raise wrong_kind(op, arg, "bool", x)


def scalar(x, op, arg):
    """tt_scalar: a number whose kind takes part in promotion."""
    kind = type(x)
    if kind is float:
        return SCALAR.pack(3, 0, 0, x, 0.0)
    if kind is int:
        return SCALAR.pack(2, 0, integer(x, op, arg), 0.0, 0.0)
    if isinstance(x, Tensor) and x.ndim:
        raise errors.ShapeError(f"{op}: {arg} is {list(x.shape)}: must be a number or 0-dim")
    if (
        isinstance(x, Tensor)
        or kind.__module__ == "numpy"
        and hasattr(x, "item")
        and getattr(x, "ndim", 1) == 0
    ):
        return scalar(x.item(), op, arg)
    if isinstance(x, numbers.Integral):
        return SCALAR.pack(1 if kind is bool else 2, 0, integer(int(x), op, arg), 0.0, 0.0)
    if isinstance(x, numbers.Complex):
        return SCALAR.pack(3 if isinstance(x, numbers.Real) else 4, 0, 0, x.real, x.imag)
    raise wrong_kind(op, arg, "Number", x)


def scalar_field(x, op, arg):
    """The fields of a tt_scalar inside an options struct."""
    return SCALAR.unpack(scalar(x, op, arg)) if x is not None else (0, 0, 0, 0.0, 0.0)


def number_form(f64, i64, other, x, op, arg):
    """The C function for a number of x's kind, and the number as it takes it."""
    kind = type(x)
    if kind is float:
        return f64, c_double(x)
    if kind is int:
        return i64, c_int64(integer(x, op, arg))
    return other, scalar(x, op, arg)


# ---- lists of ints ----


def int_list(x, op, arg):
    """(int64 array as bytes, its length) of one int, or a tuple or list of them; None is the empty list."""
    if type(x) is not tuple:
        x = (
            tuple(x)
            if isinstance(x, (list, tuple))
            else ()
            if x is None
            else (integer(x, op, arg),)
        )
    try:
        return PACK[len(x)](*x), INTS[len(x)]
    except (struct_error, IndexError):
        return array.array("q", [integer(i, op, arg) for i in x]).tobytes(), c_int64(len(x))


def list_field(x, op, arg, keep):
    """The pointer and the length that a list of ints, or one int, has in an options struct; keep holds its memory."""
    if x is None:
        return 0, 0
    keep.append(array.array("q", int_list(x, op, arg)[0]))
    return keep[-1].buffer_info()


def left_out(first, *given):
    """Arguments of which the first, whose value is then `first`, may be left out: arange(end)."""
    there = [x for x in given if x is not None]
    return (
        given
        if len(there) == len(given)
        else (first, *there, *[None] * (len(given) - 1 - len(there)))
    )


def gathered(args, named, op, arg):
    """The list argument of a call like view(2, 3), view((2, 3)) or view(size=(2, 3))."""
    if named is not None:
        if args:
            raise TypeError(f"{op}(): argument '{arg}' is given twice")
        args = (named,)
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        return tuple(args[0])
    if not args:
        raise TypeError(f"{op}(): argument '{arg}' is missing")
    return args


# ---- the rest ----


def dtype_code(x, op, arg):
    """0 for None."""
    if x is None:
        return 0
    if isinstance(x, type):
        x = BY_PYTHON_TYPE.get(x, x)
    return instance(dtype, x, op, arg).code


def device_field(x, op, arg):
    """The two fields of a tt_device; (0, 0) for None."""
    if x is None:
        return 0, 0
    if isinstance(x, str):
        x = device(x)
    return instance(device, x, op, arg).code, x.index or 0


def place(x):
    """A tt_device by reference; None is NULL."""
    from ._layouts import struct

    return (
        None
        if x is None
        else byref(struct("tt_device")(*device_field(device(x), "device", "device")))
    )


def generator_handle(x, op, arg):
    from .random import Generator

    return instance(Generator, x, op, arg)


def text(x, op, arg):
    """A str as C reads it."""
    if "\0" in instance(str, x, op, arg):
        raise errors.InvalidArgumentError(f"{op}: {arg} holds a zero character")
    return x.encode()


def texts(xs, op, arg):
    return (c_char_p * len(xs))(*(text(x, op, arg) for x in xs))


def texts_field(xs, op, arg, keep):
    if xs is None:
        return 0, 0
    keep.append(texts(xs, op, arg))
    return addressof(keep[-1]), len(xs)


def one_of(values, x, op, arg):
    """The number of a named value; None is "none"."""
    name = "none" if x is None else instance(str, x, op, arg)
    if name not in values:
        raise errors.InvalidArgumentError(
            f"{op}: {arg} is '{name}': must be one of {', '.join(values)}"
        )
    return values[name]


KINDS = "bifc"  # of dtypes and of tt_scalar, in the order of promotion
WIDEST = (1, 6, 10, 12)


def number_operand(op, arg, x, *others, alone, fit=False):
    """The 0-dim tensor that a number stands for where PyTorch takes one, too; alone: without a tensor among the others, too. Promotion beside
    one must see no more of it than its kind, and no digit may be lost. fit: the tensor's dtype must have it (of half a precision, inf will do).
    """
    beside = next((t for t in others if isinstance(t, Tensor)), None)
    if not is_number(x) or beside is None and not alone:
        raise wrong_kind(op, arg, "Tensor", x)
    number = scalar(x, op, arg)
    kind = number[0] - 1
    if beside is None or kind > KINDS.index(beside.dtype.kind):
        return result(Tensor, "tt_scalar_tensor", number, c_int32(0))  # of its own default dtype
    if fit and beside.dtype.name not in ("float16", "bfloat16"):
        result(Tensor, "tt_scalar_tensor", number, c_int32(beside.dtype.code))
    found = result(Tensor, "tt_scalar_tensor", number, c_int32(WIDEST[kind]))
    return found if beside.ndim else found.to(beside.dtype)


# ---- results ----


def like(result, tensors):
    """A result of listed tensors, not all of them PLAIN: of the class of the first one that has a class which results keep."""
    cls = next((type(t) for t in tensors if keeps(t)), None)
    return result if cls is None else classed(result, cls)


def out_tensors(xs, n, op):
    if not isinstance(xs, (tuple, list)) or len(xs) != n:
        raise wrong_kind(op, "out", f"tuple of {n} Tensors", xs)
    return [instance(Tensor, x, op, "out") for x in xs]


def columns_of(function, x):
    """A tuple of the columns of what function gives for x, or for a number as one element."""
    from . import _ops

    return _ops.unbind(function(x if x.ndim else _ops.reshape(x, (1,))), 1)


def gradients_of(handles, inputs, materialize):
    """The gradients of inputs, None or zeros for those that have none."""
    from . import _ops

    def missing(x):
        return _ops.zeros_like(x) if materialize else None

    return tuple(wrap(h) if h else missing(x) for h, x in zip(handles, inputs))
