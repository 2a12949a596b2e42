"""Operators by their C names, and custom operators: custom_op(), as in torch.library."""
from __future__ import annotations

import json
from ctypes import byref, c_int64
from functools import update_wrapper
from inspect import signature
from types import SimpleNamespace
from typing import Any, Callable, Iterable, Sequence, overload

from ._callbacks import tt_op_def
from ._handles import OpHandle
from ._lib import call, quick, result
from ._tensor import Tensor, listed
from ._values import Value, packed
from .autograd.function import Function
from .errors import AutogradError, UnimplementedError

__all__ = [
    "CustomOpDef",
    "Library",
    "Op",
    "custom_op",
    "define",
    "find",
    "impl",
    "operators",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]


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


class CustomOpDef:
    """An operator in Python: the result of custom_op("namespace::name", mutates_args=())."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function
        self.kernels: dict[str, Callable[..., Any]] = {}  # by device type
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap_rule: Callable[..., Any] | None = None
        self.signature = signature(function)
        update_wrapper(self, function)

    def register_fake(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Accepts a function of the results' shapes, which tt does not need. Returns it."""
        return fn

    def register_kernel(
        self, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None
    ) -> Any:
        """Makes func compute for tensors of device types; None: for all. Without func, returns a
        decorator."""
        if func is None:
            return lambda fn: self.register_kernel(device_types, fn)
        if device_types is None:
            self.function = func
        else:
            types = (device_types,) if isinstance(device_types, str) else device_types
            self.kernels.update((kind, func) for kind in types)
        return func

    def register_autograd(
        self, backward: Callable[..., Any], *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Makes backward(ctx, *grads) compute the gradients of the arguments, after
        setup_context(ctx, inputs, output) has saved what it needs."""
        self.backward, self.setup_context = backward, setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Makes func(info, in_dims, *args) compute under vmap: it returns results and out_dims.
        Without func, returns a decorator. info.batch_size is the number of samples."""
        if func is None:
            return self.register_vmap
        self.vmap_rule = func
        return func

    def compute(self, args: tuple[Any, ...]) -> Any:
        """Returns the results for tensors of this device."""
        first = next((x for x in args if isinstance(x, Tensor)), None)
        kind = "cpu" if first is None else first.device.type
        return self.kernels.get(kind, self.function)(*args)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.signature.bind(*args, **kwargs)
        given.apply_defaults()
        recorded = Recorded if self.vmap_rule is None else RecordedWithRule
        return recorded.apply(self, *given.args, *given.kwargs.values())

    def __repr__(self) -> str:
        return f"<CustomOpDef({self.name})>"


class Recorded(Function):
    """A call of a CustomOpDef."""

    @staticmethod
    def forward(ctx: Any, op: CustomOpDef, *args: Any) -> Any:
        ctx.op = op
        output = op.compute(args)
        if op.setup_context is not None:
            op.setup_context(ctx, inputs=args, output=output)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if ctx.op.backward is None:
            raise AutogradError(f"{ctx.op.name}: register_autograd has not given it a gradient")
        found = ctx.op.backward(ctx, *grads)
        return (None, *(found if isinstance(found, tuple) else (found,)))


class RecordedWithRule(Recorded):
    """A call of a CustomOpDef that has a rule for vmap."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, op: CustomOpDef, *args: Any) -> Any:
        return op.vmap_rule(info, in_dims[1:], *args)  # type: ignore[misc]


definitions: dict[str, CustomOpDef] = {}
samplers: dict[str, Op] = {}  # schema -> the operator of tt.distributions, which reloads keep


def defined(op: str | CustomOpDef, function: str) -> CustomOpDef:
    """Returns the operator that is given by itself or by its name."""
    if isinstance(op, CustomOpDef):
        return op
    if op not in definitions:
        raise RuntimeError(f"{function}: there is no operator {op!r}")
    return definitions[op]


def register_autograd(
    op: str | CustomOpDef,
    backward: Callable[..., Any],
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """Calls op.register_autograd. lib is ignored."""
    defined(op, "register_autograd").register_autograd(backward, setup_context=setup_context)


def register_fake(
    op: str | CustomOpDef, func: Callable[..., Any] | None = None, *, lib: Any = None
) -> Any:
    """Accepts a function of the results' shapes, which tt does not need, of an operator that need
    not be there. Without func, returns a decorator."""
    return (lambda fn: fn) if func is None else func


def register_kernel(
    op: str | CustomOpDef,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    *,
    lib: Any = None,
) -> Any:
    """Calls op.register_kernel. lib is ignored."""
    return defined(op, "register_kernel").register_kernel(device_types, func)


def register_vmap(
    op: str | CustomOpDef, func: Callable[..., Any] | None = None, *, lib: Any = None
) -> Any:
    """Calls op.register_vmap. lib is ignored."""
    return defined(op, "register_vmap").register_vmap(func)


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Defines the operator "namespace::name", for which impl() gives functions.

    schema: its arguments and results, such as "(Tensor x, int k=1) -> Tensor". Calls pass arguments
    to the functions as they are given. lib and tags are ignored.
    """
    name = qualname.partition("(")[0].strip()
    if "::" not in name:
        raise ValueError(f"library.define: qualname is {qualname!r}: must be 'namespace::name'")

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise UnimplementedError(f"{name}: library.impl has given it no function")

    missing.__name__ = name.partition("::")[2]
    definitions[name] = CustomOpDef(name, missing)


KINDS = {"CPU": "cpu", "CUDA": "cuda", "cpu": "cpu", "cuda": "cuda"}  # of impl: device types


def impl(
    qualname: str,
    types: str | Sequence[str],
    func: Callable[..., Any] | None = None,
    *,
    lib: Any = None,
) -> Any:
    """Makes func compute an operator of define(). Without func, returns a decorator.

    types: device types, "default" for all, or keys of PyTorch's dispatcher: those that are neither
    of a device nor Composite… are accepted and ignored.
    """
    if func is None:
        return lambda fn: impl(qualname, types, fn)
    definition = defined(qualname, "library.impl")
    for kind in (types,) if isinstance(types, str) else types:
        if kind in KINDS:
            definition.register_kernel(KINDS[kind], func)
        elif kind in ("default", "") or kind.startswith("Composite"):
            definition.register_kernel(None, func)
            definition.signature = signature(func)
    return func


class Library:
    """The operators of a namespace, with the API of torch.library.Library. kind and dispatch_key:
    as PyTorch's; the latter is that of impl() without one."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Library: kind is {kind!r}: must be 'DEF', 'FRAGMENT' or 'IMPL'")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator by a schema that begins with its name. Returns its name."""
        name, bracket, rest = schema.partition("(")
        define(f"{self.ns}::{name.strip()}", bracket + rest)
        return name.strip()

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **options: Any
    ) -> None:
        """Makes fn compute an operator of this namespace: see library.impl."""
        name = str(op_name).rpartition("::")[2].partition(".")[0]
        impl(f"{self.ns}::{name}", dispatch_key or self.dispatch_key, fn)


@overload
def custom_op(
    name: str, /, compute: None = None, *, backward: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Op]:
    ...


@overload
def custom_op(
    name: str, /, compute: Callable[..., Any], *, backward: Callable[..., Any] | None = None
) -> Op:
    ...


@overload
def custom_op(
    name: str,
    /,
    compute: Callable[..., Any] | None = None,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    ...


def custom_op(
    name: str,
    /,
    compute: Callable[..., Any] | None = None,
    *,
    backward: Callable[..., Any] | None = None,
    mutates_args: str | Iterable[str] = (),
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Registers a custom operator and returns it. Without `compute`, returns a decorator for it.

    name: such as "name(x: Tensor, k: Int) -> Tensor", of an operator that C knows, too; or, as in
        PyTorch, "namespace::name": the result is a CustomOpDef then, for arguments of any kinds.
    compute: called with the arguments of the schema, under no_grad; returns a tensor or a tuple.
    backward: called as backward(grads, args, results), with a gradient or None per result; returns
        a gradient or None per tensor argument. Without it the results require no gradient.
    mutates_args, device_types, schema, tags: of PyTorch's form: accepted; device_types are those
        that compute is for.
    """
    if "::" in name and "(" not in name:
        return defined_in_python(name, compute, device_types)
    if compute is None:
        return lambda fn: custom_op(name, fn, backward=backward)
    function = compute
    callbacks = SimpleNamespace(compute=lambda args: function(*args), backward=backward)
    call("tt_op_register", byref(tt_op_def(callbacks, schema=name.encode())))
    return find(name.partition("(")[0].strip())


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """Returns custom_op(name, fn): tt traces no kernels of Triton."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any) -> Any:
    """Returns the kernel."""
    return triton_kernel


def defined_in_python(
    name: str, function: Callable[..., Any] | None, device_types: str | Sequence[str] | None
) -> Any:
    """Returns the CustomOpDef of a function; without it, a decorator."""
    if function is None:
        return lambda fn: defined_in_python(name, fn, device_types)
    definition = definitions[name] = CustomOpDef(name, function)
    return definition


def __dir__() -> list[str]:
    return __all__
