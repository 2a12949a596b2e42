"""Python values as C's tagged ones, and back: arguments of operators by name."""
from ctypes import POINTER, c_int64, c_void_p, cast, string_at

from ._convert import list_field, scalar, tensors_field
from ._hooks import optional_tensors
from ._layouts import CONSTANTS, struct
from ._lib import Handle
from ._tensor import Tensor, borrow
from ._types import device, dtype

Value = struct("tt_value")
TAG = {name[len("TT_VAL_"):]: code for name, code in CONSTANTS.items() if name.startswith("TT_VAL_")}
NUMBERS = (None, lambda s: bool(s.i), lambda s: s.i, lambda s: s.re, lambda s: complex(s.re, s.im))  # by kind of a tt_scalar


def packed(x, kept):
    """The tt_value of an argument; what it points to goes into kept."""
    if x is None:
        return Value()
    if isinstance(x, Tensor):
        return Value(tag=TAG["TENSOR"], tensor=x._address)
    if isinstance(x, dtype):
        return Value(tag=TAG["INT"], i=x.code)
    if isinstance(x, device):
        return Value(tag=TAG["DEVICE"], device=struct("tt_device")(x.code, x.index or 0))
    if isinstance(x, Handle):
        return Value(tag=TAG["GENERATOR"], generator=x._address)
    if isinstance(x, str):
        kept.append(x.encode())
        return Value(tag=TAG["STR"], str=kept[-1], n=len(kept[-1]))
    if isinstance(x, (tuple, list)):
        kind, field = ("ints", list_field) if all(type(i) is int for i in x) else ("tensors", tensors_field)
        address, n = field(x, "operator", "argument", kept)
        return Value(tag=TAG[kind.upper()], n=n, **{kind: address})
    return Value(tag=TAG["SCALAR"], scalar=struct("tt_scalar").from_buffer_copy(scalar(x, "operator", "argument")))


READ = {
    TAG["TENSOR"]: lambda v: borrow(v.tensor), TAG["TENSORS"]: lambda v: optional_tensors(cast(v.tensors, POINTER(c_void_p)), v.n),
    TAG["SCALAR"]: lambda v: NUMBERS[v.scalar.kind](v.scalar), TAG["INT"]: lambda v: v.i, TAG["FLOAT"]: lambda v: v.f, TAG["BOOL"]: lambda v: bool(v.i),
    TAG["INTS"]: lambda v: cast(v.ints, POINTER(c_int64))[:v.n], TAG["DEVICE"]: lambda v: device.of(v.device.type, v.device.index),
    TAG["STR"]: lambda v: string_at(c_void_p.from_buffer(v, Value.str.offset).value, v.n).decode()}


def values(address, n):
    """The arguments that C gives to a callback."""
    found = cast(address, POINTER(Value))
    return [READ[found[i].tag](found[i]) if found[i].tag in READ else None for i in range(n)]
