"""Proxies: what traced functions compute with. They record in a graph what is done to them."""
from __future__ import annotations

import dis
import inspect
import operator
from bisect import bisect_left
from typing import Any, Callable, Iterator

from ..overrides import is_tensor_method_or_property
from .._layout import layout
from .._types import device, dtype, memory_format
from .graph import Graph
from .node import Node, map_aggregate

TYPE_CHECKING = False

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError"]
__all__ += ["TracerBase"]

ITERATED = "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop"
ITERATED += " or as a *args or **kwargs function argument: see docs/pytorch-users.md, fx"
BASIC = (str, int, float, bool, complex, type(None), type(...), bytes, range, type)


class TraceError(ValueError):
    """A traced function did what cannot be recorded."""


class TracerBase:
    """Records operators into a graph."""

    graph: Graph
    module_stack: Any = None

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Inserts a node."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """Returns the proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Inserts a node whose arguments may contain proxies, and returns its proxy."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """Returns an argument as a node has it: proxies become nodes."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*map(self.create_arg, a))
        if isinstance(a, tuple) and type(a) is not tuple:  # Size
            return type(a)(map(self.create_arg, a)) if not contains_proxy(a) else tuple(a)
        if isinstance(a, (tuple, list)):
            return type(a)(map(self.create_arg, a))
        if isinstance(a, dict):
            for key in a:
                if contains_proxy(key):
                    raise RuntimeError(
                        "Keys for dictionaries used as an argument cannot be Proxies"
                    )
            return {k: self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, (*BASIC, Node, dtype, device, layout, memory_format)):
            return a
        if callable(a) or hasattr(a, "__module__") and type(a).__module__.startswith("tt."):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called where a proxy decides: `if x`."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called where a proxy is iterated. Unpacking, as in `a, b = x`, is recorded."""
        indexed: Any = obj
        count = unpacked_count(inspect.currentframe())
        if count is None:
            raise TraceError(ITERATED)
        return (operator.getitem(indexed, i) for i in range(count))

    def keys(self, obj: Proxy) -> Any:
        """Called for `**x`."""
        return Attribute(obj, "keys")()


def unpacked_count(frame: Any) -> int | None:
    """Returns how many variables the statement that iterates a proxy unpacks to, if it does."""
    caller = frame.f_back.f_back  # of iter() and of __iter__
    instructions = list(dis.get_instructions(caller.f_code))
    offsets = [i.offset for i in instructions]
    found = instructions[bisect_left(offsets, caller.f_lasti)]
    return found.argval if found.opname == "UNPACK_SEQUENCE" else None


def contains_proxy(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(contains_proxy, x))
    return isinstance(x, Proxy)


class GraphAppendingTracer(TracerBase):
    """Records into a given graph, for proxies that are made of its nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for the result of a node: operators, methods, attributes and functions on it insert
    nodes.

    Proxy(node) makes one of a node, so that Python code inserts nodes where the graph's insertion
    point is.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = tracer or GraphAppendingTracer(node.graph)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call fx.wrap('len') at module scope"
        )

    def __contains__(self, item: Any) -> bool:
        raise TraceError("'in' is not supported in symbolic tracing")

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return self

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        tracers: list[TracerBase] = []

        def note(x: Any) -> Any:
            if isinstance(x, Proxy) and x.tracer not in tracers:
                tracers.append(x.tracer)
            return x

        map_aggregate((args, kwargs), note)
        if len(tracers) > 1:
            raise RuntimeError("a function takes proxies of different tracers")
        tracer = tracers[0]
        name = getattr(func, "__name__", "function")
        if is_tensor_method_or_property(func):
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", func, args, kwargs, name)


class Attribute(Proxy):
    """An attribute of a proxy. It becomes a node only if its value is used; a call of it is a
    call_method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    if not TYPE_CHECKING:

        @property
        def node(self) -> Node:
            if self._node is None:
                made = self.tracer.create_proxy(
                    "call_function", getattr, (self.root, self.attr), {}
                )
                self._node = made.node
            return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, whose shape and dtype are known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    shape: Any = property(lambda self: self.param.shape)
    dtype: Any = property(lambda self: self.param.dtype)

    def size(self, dim: int | None = None) -> Any:
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        return int(self.param.dim())

    ndim: Any = property(dim)

    def numel(self) -> int:
        return int(self.param.numel())


TWO = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor matmul".split()
OTHERS = "getitem eq ne lt gt le ge pos neg invert".split()


def recorded(function: Any, reflected: bool = False) -> Any:
    """Returns the special method that records a function of the module operator."""

    def method(self: Proxy, *args: Any) -> Proxy:
        given = (*args, self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", function, given, {})

    return method


for _name in TWO + OTHERS:
    _function = getattr(operator, _name)
    setattr(Proxy, f"__{_name.rstrip('_')}__", recorded(_function))
    if _name in TWO:
        setattr(Proxy, f"__r{_name.rstrip('_')}__", recorded(_function, reflected=True))
