"""Operators by their C names, and custom operators: custom_op(), as in torch.library."""
from __future__ import annotations

import json
from ctypes import byref, c_int64
from types import SimpleNamespace

from ._callbacks import tt_op_def
from ._handles import OpHandle
from ._lib import call, quick, result
from ._tensor import Tensor, listed
from ._types import overload
from ._values import Value, packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["Op", "custom_op", "find", "operators"]


def operators() -> list[dict[str, Any]]:
    """Returns every built-in operator as a dict with its name, schema and forms."""
    return json.loads(quick.tt_manifest())["operators"]


class Op(OpHandle):
    """An operator, built in or custom.

    Call it with the arguments of its schema by position. None or a missing trailing argument means
    the default.
    """

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        """Returns the result, or a tuple of several results."""
        kept: list[Any] = []
        values = (Value * len(args))(*(packed(x, kept) for x in args))
        results = listed("tt_op_call", self, values, c_int64(len(args)))
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"<{self.schema}>"


def find(name: str) -> Op:
    """Returns the operator with this C name, without tt_. Raises TtError if there is none."""
    return result(Op, "tt_op_find", name.encode())


@overload
def custom_op(
    schema: str, compute: None = None, *, backward: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Op]:
    ...


@overload
def custom_op(
    schema: str, compute: Callable[..., Any], *, backward: Callable[..., Any] | None = None
) -> Op:
    ...


def custom_op(
    schema: str,
    compute: Callable[..., Any] | None = None,
    *,
    backward: Callable[..., Any] | None = None,
) -> Op | Callable[[Callable[..., Any]], Op]:
    """Registers a custom operator and returns it. Without `compute`, returns a decorator for it.

    schema: such as "name(x: Tensor, k: Int) -> Tensor".
    compute: called with the arguments of the schema, under no_grad; returns a tensor or a tuple.
    backward: called as backward(grads, args, results), with a gradient or None per result; returns
        a gradient or None per tensor argument. Without it the results require no gradient.
    """
    if compute is None:
        return lambda fn: custom_op(schema, fn, backward=backward)
    function = compute
    callbacks = SimpleNamespace(compute=lambda args: function(*args), backward=backward)
    call("tt_op_register", byref(tt_op_def(callbacks, schema=schema.encode())))
    return find(schema.partition("(")[0].strip())


def __dir__() -> list[str]:
    return __all__
