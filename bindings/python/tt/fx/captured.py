"""Graphs of captured operators: reads and rewrites the calls of C that a function makes.

A graph is captured below autograd with example inputs, so its nodes are calls of leaf operators and
views, with the shapes of the examples.
"""
from __future__ import annotations

from contextlib import contextmanager
from ctypes import POINTER, addressof, c_int32, c_int64, cast
from typing import Any, Callable, Iterator, Sequence

from .._convert import integer
from .._graph import BOOL, FLOAT, INT, INTS, NONE, SCALAR, STR, TENSOR, TENSORS
from .._graph import GraphHandle, Plan, captured, int32s
from .._structs import struct
from .._tensor import Tensor
from .._tree import with_tensors
from .._types import DTYPES
from ..library import find

__all__ = ["Graph", "GraphModule", "Node", "capture"]


class Node:
    """A value of a graph: an input (placeholder), a tensor from outside (get_attr), or a result of
    an operator (call_function), whose name is target."""

    def __init__(self, graph: Graph, value: int) -> None:
        self.graph, self.value = graph, value
        self.meta: dict[str, Any] = {}

    @property
    def index(self) -> int:
        """The number of the call that computes this value; -1 for an input or an outside tensor."""
        return self.graph.handle.value(self.value).node

    @property
    def op(self) -> str:
        if self.index >= 0:
            return "call_function"
        return "placeholder" if self.value in self.graph.inputs() else "get_attr"

    @property
    def target(self) -> str:
        if self.index >= 0:
            return self.graph.handle.node(self.index).name.decode()
        if self.op == "placeholder":
            return f"in{self.graph.inputs().index(self.value)}"
        return f"constant{self.graph.handle.value(self.value).storage}"

    @property
    def name(self) -> str:
        return f"{self.target}_{self.value}" if self.index >= 0 else self.target

    @property
    def args(self) -> tuple[Any, ...]:
        return tuple(self.graph.arguments(self.index).values()) if self.index >= 0 else ()

    @property
    def kwargs(self) -> dict[str, Any]:
        """Always {}: args contains all arguments."""
        return {}

    @property
    def shape(self) -> tuple[int, ...]:
        v = self.graph.handle.value(self.value)
        return tuple(cast(v.sizes, POINTER(c_int64))[: v.ndim]) if v.ndim else ()

    @property
    def dtype(self) -> Any:
        return DTYPES[self.graph.handle.value(self.value).dtype]

    @property
    def users(self) -> dict[Node, None]:
        """The first results of the calls that read this value."""
        nodes = (self.graph.first(i) for i in self.graph.handle.users(self.value))
        return {n: None for n in nodes if n is not None}

    @property
    def all_input_nodes(self) -> list[Node]:
        return [n for n in flat(self.args) if isinstance(n, Node)]

    def replace_all_uses_with(self, new: Node) -> list[Node]:
        """Replaces this value by `new` in all later calls and outputs. Returns the nodes that used
        it."""
        changed = list(self.users)
        self.graph.handle.replace_uses(self.value, new.value)
        return changed

    def __repr__(self) -> str:
        return self.name


def flat(args: Any) -> Iterator[Any]:
    for x in args:
        if isinstance(x, (list, tuple)):
            yield from x
        else:
            yield x


class Graph:
    """The calls of a captured function in execution order. str() has a line for each."""

    def __init__(self, handle: GraphHandle) -> None:
        self.handle = handle
        self.node_of_value: dict[int, Node] = {}
        self.before: int | None = None

    def of_value(self, value: int) -> Node:
        return self.node_of_value.setdefault(value, Node(self, value))

    def first(self, i: int) -> Node | None:
        """The first result of a call."""
        n = self.handle.node(i)
        outs = [v for v in int32s(n.outs, n.n_outs) if v >= 0]
        return self.of_value(outs[0]) if outs else None

    def inputs(self) -> list[int]:
        info = self.handle.info()
        return int32s(info.inputs, info.n_inputs)

    @property
    def outputs(self) -> list[Node]:
        info = self.handle.info()
        return [self.of_value(v) for v in int32s(info.outputs, info.n_outputs)]

    @property
    def nodes(self) -> list[Node]:
        """The inputs, then the results of the calls in order. A call that writes has the written
        tensor."""
        nodes = [self.of_value(v) for v in self.inputs()]
        for i in range(self.handle.info().n_nodes):
            n = self.handle.node(i)
            nodes += [self.of_value(v) for v in int32s(n.outs, n.n_outs) if v >= 0]
        return nodes

    def arguments(self, i: int) -> dict[str, Any]:
        """The arguments of a call by name."""
        arguments = {}
        for k in range(self.handle.node(i).n_args):
            a = self.handle.arg(i, k)
            arguments[a.name.decode()] = self.argument(a)
        return arguments

    def argument(self, a: Any) -> Any:
        values = [None if v < 0 else self.of_value(v) for v in int32s(a.values, a.n_values)]
        if a.tag == TENSOR:
            return values[0]
        if a.tag == TENSORS:
            return values
        if a.tag == INTS:
            return cast(a.ints, POINTER(c_int64))[: a.n] if a.n else []
        if a.tag == SCALAR:
            s = a.scalar
            return [bool(s.i), s.i, s.re, complex(s.re, s.im)][s.kind - 1]
        plain = {INT: a.i, FLOAT: a.f, BOOL: bool(a.i), STR: a.str and a.str.decode()}
        return plain.get(a.tag)

    @contextmanager
    def inserting_before(self, node: Node) -> Iterator[None]:
        """Inserts the calls of a with block before a node."""
        old, self.before = self.before, node.index
        try:
            yield
        finally:
            self.before = old

    @contextmanager
    def inserting_after(self, node: Node) -> Iterator[None]:
        """Inserts the calls of a with block after a node."""
        old, self.before = self.before, node.index + 1
        try:
            yield
        finally:
            self.before = old

    def call_function(self, target: str, args: Sequence[Any] = ()) -> Node:
        """Inserts a call of an operator by its C name. Composites are decomposed. Returns the first
        result."""
        kept: list[Any] = []
        given = [packed_argument(x, kept) for x in args]
        end = self.handle.info().n_nodes
        before = end if self.before is None else self.before
        outs = self.handle.insert(before, find(target), given)
        if self.before is not None:
            self.before += self.handle.info().n_nodes - end
        return self.of_value(outs[0])

    def erase_node(self, node: Node) -> None:
        """Removes a call whose results nothing uses."""
        self.handle.remove(node.index)

    def output(self, nodes: Any) -> None:
        """Sets the outputs of the graph."""
        chosen = [nodes] if isinstance(nodes, Node) else list(nodes)
        self.handle.set_outputs([n.value for n in chosen])

    @property
    def num_nodes(self) -> int:
        """The number of calls."""
        return int(self.handle.info().n_nodes)

    @property
    def num_inputs(self) -> int:
        return int(self.handle.info().n_inputs)

    @property
    def num_outputs(self) -> int:
        return int(self.handle.info().n_outputs)

    def dot(self) -> str:
        """Returns the graph in Graphviz's DOT language."""
        return self.handle.dot()

    def lint(self) -> None:
        """Does nothing: each edit verifies the graph and raises if it is invalid."""

    def eliminate_dead_code(self) -> None:
        """Removes calls whose results are unused. Replaces all nodes of the graph."""
        self.handle, self.node_of_value = self.handle.optimized(), {}

    def print_tabular(self) -> None:
        """Prints the graph."""
        print(self)

    def __str__(self) -> str:
        return self.handle.text()


def packed_argument(x: Any, kept: list[Any]) -> Any:
    """Converts an argument for C. `kept` owns its memory."""
    a = struct("tt_graph_arg")()
    kept.append(a)
    if x is None:
        a.tag = NONE
    elif isinstance(x, Node):
        kept.append((c_int32 * 1)(x.value))
        a.tag, a.n_values, a.values = TENSOR, 1, address(kept[-1])
    elif isinstance(x, (list, tuple)) and x and isinstance(x[0], Node):
        kept.append((c_int32 * len(x))(*(n.value for n in x)))
        a.tag, a.n_values, a.values = TENSORS, len(x), address(kept[-1])
    elif isinstance(x, (list, tuple)):
        ints = [integer(i, "call_function", "an item of a list") for i in x]
        kept.append((c_int64 * max(len(x), 1))(*ints))
        a.tag, a.n, a.ints = INTS, len(x), address(kept[-1])
    elif isinstance(x, bool):
        a.tag, a.i = BOOL, x
    elif isinstance(x, int):
        a.tag, a.i = INT, integer(x, "call_function", "an argument")
    elif isinstance(x, float):
        a.tag, a.f = FLOAT, x
    elif isinstance(x, str):
        a.tag, a.str, a.n = STR, x.encode(), len(x.encode())
    else:
        raise TypeError(f"an argument of a call is a {type(x).__name__}: must be a Node, a number")
    return a


def address(array: Any) -> int:
    """Returns the address of an array."""
    return addressof(array)


def result_of(structure: Any, outputs: list[Tensor]) -> Any:
    """Returns the outputs of a graph in the structure of the captured call's result; without one,
    as a tensor or a tuple."""
    if structure is not None:
        return with_tensors(structure, outputs)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


class GraphModule:
    """A captured function that runs its graph in its own memory.

    Inputs must have the shapes and dtypes of the examples.
    """

    def __init__(self, root: Any, graph: Graph, structure: Any = None) -> None:
        self.graph, self.structure = graph, structure
        self.plan: Plan | None = None

    def recompile(self) -> None:
        """Makes the next call run the current graph."""
        self.plan = None

    def __call__(self, *inputs: Tensor) -> Any:
        if self.plan is None:
            self.plan = Plan(self.graph.handle)
        return result_of(self.structure, self.plan.run(inputs))

    forward = __call__

    @property
    def code(self) -> str:
        return str(self.graph)


def capture(root: Callable[..., Any], *inputs: Tensor) -> GraphModule:
    """Calls a function or module with tensors, and returns the calls of C that it makes."""
    handle, structure = captured(root, inputs)
    return GraphModule(root, Graph(handle), structure)


def __dir__() -> list[str]:
    return __all__
