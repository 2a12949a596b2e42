"""Operators by C's names, and operators of one's own: custom_op(), as torch.library has it."""
import json
from ctypes import CFUNCTYPE, POINTER, byref, c_int32, c_int64, c_void_p, cast, sizeof, string_at

from ._convert import INT_MAX, INT_MIN, scalar
from ._hooks import drop, functions, give, guarded, keys
from ._layouts import CONSTANTS, struct
from ._lib import Handle, call, fail, lib, local, quick, result
from ._tensor import Tensor, borrow, wrap
from ._types import device, dtype
from .random import Generator

Value, Definition, Addresses = struct("tt_value"), struct("tt_op_def"), POINTER(c_void_p)
TAG = {name[len("TT_VAL_"):]: code for name, code in CONSTANTS.items() if name.startswith("TT_VAL_")}
NUMBERS = (None, lambda s: bool(s.i), lambda s: s.i, lambda s: s.re, lambda s: complex(s.re, s.im))  # by kind of a tt_scalar


def operators():
    """Every built-in operator as a dict: name, schema, forms."""
    return json.loads(quick.tt_manifest())["operators"]


# ---- values ----

def array_of(kind, items, kept):
    kept.append((kind * len(items))(*items))
    return cast(kept[-1], c_void_p)


def packed(x, kept):
    """The tt_value of an argument; what it points to goes into kept."""
    if x is None:
        return Value()
    if isinstance(x, Tensor):
        return Value(tag=TAG["TENSOR"], tensor=x._address)
    if isinstance(x, bool):
        return Value(tag=TAG["BOOL"], i=x)
    if isinstance(x, int) and INT_MIN <= x <= INT_MAX:
        return Value(tag=TAG["INT"], i=x)
    if isinstance(x, float):
        return Value(tag=TAG["FLOAT"], f=x)
    if isinstance(x, dtype):
        return Value(tag=TAG["INT"], i=x.code)
    if isinstance(x, device):
        return Value(tag=TAG["DEVICE"], device=struct("tt_device")(x.code, x.index or 0))
    if isinstance(x, Generator):
        return Value(tag=TAG["GENERATOR"], generator=x._address)
    if isinstance(x, str):
        kept.append(x.encode())
        return Value(tag=TAG["STR"], str=kept[-1], n=len(kept[-1]))
    if isinstance(x, (tuple, list)) and all(type(i) is int for i in x):
        return Value(tag=TAG["INTS"], ints=array_of(c_int64, x, kept), n=len(x))
    if isinstance(x, (tuple, list)) and all(t is None or isinstance(t, Tensor) for t in x):
        return Value(tag=TAG["TENSORS"], tensors=array_of(c_void_p, [t._address if t is not None else None for t in x], kept), n=len(x))
    return Value(tag=TAG["SCALAR"], scalar=struct("tt_scalar").from_buffer_copy(scalar(x, "operator", "argument")))


def tensors(addresses, n):
    return [borrow(addresses[i]) if addresses[i] else None for i in range(n)]


def unpacked(v):
    """The argument that a callback is given."""
    read = {TAG["TENSOR"]: lambda: borrow(v.tensor), TAG["TENSORS"]: lambda: tensors(cast(v.tensors, Addresses), v.n),
            TAG["SCALAR"]: lambda: NUMBERS[v.scalar.kind](v.scalar), TAG["INT"]: lambda: v.i, TAG["FLOAT"]: lambda: v.f, TAG["BOOL"]: lambda: bool(v.i),
            TAG["INTS"]: lambda: cast(v.ints, POINTER(c_int64))[:v.n], TAG["STR"]: lambda: string_at(c_void_p.from_buffer(v, Value.str.offset).value, v.n).decode(),
            TAG["DEVICE"]: lambda: device.of(v.device.type, v.device.index)}.get(v.tag)
    return read() if read else None


# ---- operators ----

class Op(Handle):
    """An operator, built in or one's own: call it with the arguments of its schema, by position; None, or missing at the end: the default."""
    __slots__ = ()
    name = property(lambda self: quick.tt_op_name(self).decode())
    schema = property(lambda self: quick.tt_op_schema(self).decode())

    def __call__(self, *args):
        kept = []
        values = (Value * len(args))(*(packed(x, kept) for x in args))
        cap, n = 8, c_int64()
        while True:
            outs = (c_void_p * cap)()
            if not lib.tt_op_call(local.ctx, self, values, c_int64(len(args)), outs, c_int64(cap), byref(n)):
                break
            if n.value <= cap:
                fail()
            cap = n.value
        found = [wrap(h) for h in outs[:n.value]]
        return found[0] if len(found) == 1 else tuple(found)

    def __repr__(self):
        return f"<{self.schema}>"


def find(name):
    """The operator of that name: C's, without tt_."""
    return result(Op, "tt_op_find", name.encode())


def give_all(found, outs, n, what):
    found = found if isinstance(found, (tuple, list)) else (found,)
    if len(found) != n:
        raise ValueError(f"{what} must return {n} tensors, not {len(found)}")
    for i, t in enumerate(found):
        give(outs, i, t, what)


@CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(Value), c_int64, Addresses, c_int64)
def on_compute(key, _ctx, args, n_args, outs, n_outs):
    return guarded(lambda: give_all(functions[key][0](*map(unpacked, args[:n_args])), outs, n_outs, "an operator"))


@CFUNCTYPE(c_int32, c_void_p, c_void_p, Addresses, c_int64, POINTER(Value), c_int64, Addresses, Addresses, c_int64)
def on_backward(key, _ctx, grads, n_outs, args, n_args, results, input_grads, n_inputs):
    return guarded(lambda: give_all(functions[key][1](tensors(grads, n_outs), [unpacked(v) for v in args[:n_args]], tensors(results, n_outs)), input_grads,
                                    n_inputs, "the backward of an operator"))


def custom_op(schema, compute=None, *, backward=None):
    """Registers compute(*args) as the operator "name(x: Tensor, k: Int) -> Tensor" and returns its Op; also a decorator. It computes without
    recording. backward(grads, args, results) returns one gradient or None per tensor argument; without it the results have none."""
    if compute is None:
        return lambda fn: custom_op(schema, fn, backward=backward)
    key = next(keys)
    functions[key] = compute, backward
    definition = Definition(sizeof(Definition), schema.encode(), key, cast(on_compute, c_void_p), cast(on_backward, c_void_p) if backward else None,
                            cast(drop, c_void_p))
    call("tt_op_register", byref(definition))
    return find(schema.partition("(")[0].strip())
