"""Operators by C's names, and operators of one's own: custom_op(), as torch.library has it."""
import json
from ctypes import byref, c_int64
from types import SimpleNamespace

from ._callbacks import tt_op_def
from ._handles import OpHandle
from ._lib import call, quick, result
from ._tensor import listed
from ._values import Value, packed


def operators():
    """Every built-in operator as a dict: name, schema, forms."""
    return json.loads(quick.tt_manifest())["operators"]


class Op(OpHandle):
    """An operator, built in or one's own: call it with the arguments of its schema, by position; None, or missing at the end: the default."""

    __slots__ = ()

    def __call__(self, *args):
        kept = []
        values = (Value * len(args))(*(packed(x, kept) for x in args))
        found = listed("tt_op_call", self, values, c_int64(len(args)))
        return found[0] if len(found) == 1 else found

    def __repr__(self):
        return f"<{self.schema}>"


def find(name):
    """The operator of that name: C's, without tt_."""
    return result(Op, "tt_op_find", name.encode())


def custom_op(schema, compute=None, *, backward=None):
    """Registers compute(*args) as the operator "name(x: Tensor, k: Int) -> Tensor" and returns its Op; also a decorator. It computes without
    recording. backward(grads, args, results) returns one gradient or None per tensor argument; without it the results have none.
    """
    if compute is None:
        return lambda fn: custom_op(schema, fn, backward=backward)
    table = tt_op_def(
        SimpleNamespace(compute=lambda args: compute(*args), backward=backward),
        schema=schema.encode(),
    )
    call("tt_op_register", byref(table))
    return find(schema.partition("(")[0].strip())
