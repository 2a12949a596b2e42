"""Graphs of traced Python code."""
from __future__ import annotations

import copy
import re
from typing import Any, Callable, Iterator

from .._interception import ensure_built
from ._code import Names, PythonCode, Writer
from .node import Node, map_aggregate, map_arg

__all__ = ["Graph", "PythonCode"]


def target_to_name(target: Any) -> str:
    """Returns the name of a node that calls target: in snake case, without the underscores of
    special methods."""
    name = target.__name__ if callable(target) else target
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace(".", "_"))
    return str(name.lower())


class Graph:
    """The nodes of a traced function in the order in which they run.

    Passes create nodes, replace their uses and erase them; lint() checks the result.
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._names = Names()
        self._insert: Callable[[Node], None] = self._root.prepend
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras

    @property
    def owning_module(self) -> Any:
        """The GraphModule of the graph, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> NodeList:
        """The nodes, which may be changed while they are iterated."""
        return NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Returns the nodes of a kind, those with this target if it is given."""
        found = [node for node in self.nodes if node.op == op]
        return [node for node in found if target is None or node.target == target]

    def output_node(self) -> Node:
        """Returns the node that ends the graph."""
        return self._root._prev

    # ---- nodes ----

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Inserts a node at the place that inserting_before() has chosen, or at the end."""
        wanted = name if name is not None else self._target_to_str(target)
        node = Node(
            self, self._names.create(wanted), op, target, args or (), kwargs or {}, type_expr
        )
        self._insert(node)
        return node

    def _target_to_str(self, target: Any) -> str:
        return target_to_name(target)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Inserts an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Inserts the read of an attribute of the module, such as "layer.weight"."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Inserts a call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Inserts a call of a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Inserts a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Inserts the node that returns result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Inserts a copy of a node, of another graph, too. arg_transform: its nodes -> mine."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Inserts copies of the nodes of g. val_map receives them. Returns what g returns here.

        Nodes that are in val_map already are not copied.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node that nothing uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._set_arguments((), {})

    def inserting_before(self, n: Node | None = None) -> Any:
        """Inserts nodes before n in a with block, or at the beginning. Without a block, from now
        on."""
        return Insertion(self, (n or self._root._next).prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Inserts nodes behind n in a with block, in their order."""
        return Insertion(self, Behind(n or self._root))

    # ---- the whole ----

    def lint(self) -> None:
        """Raises if a node is of another graph, used before it is computed, or names no attribute
        of the owning module."""
        seen: set[Node] = set()
        given: set[str] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Node {used} of {node} does not belong to this Graph")
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined"
                    )
            if node.name in given:
                raise RuntimeError(f"Node redefined name {node.name}!")
            given.add(node.name)
            seen.add(node)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._find_attribute(node)

    def _find_attribute(self, node: Node) -> None:
        found = self.owning_module
        for part in node.target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part}"
                )
            found = getattr(found, part)

    def eliminate_dead_code(self, is_impure_node: Any = None) -> bool:
        """Removes nodes whose results nothing uses. Returns whether there were any."""
        self.lint()
        stays = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
                changed = True
        return changed

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        copied = Graph(tracer_cls=self._tracer_cls)
        found = copied.graph_copy(self, {}, return_output_node=True)
        if found is not None:
            result, old = found
            copied.output(result, old.type).meta = copy.copy(old.meta)
        return copied

    def __reduce__(self) -> Any:
        return restored, (saved(self),)

    # ---- text ----

    def __str__(self) -> str:
        ensure_built()  # the names of functions
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Prints a table of the nodes."""
        ensure_built()
        head = ["opcode", "name", "target", "args", "kwargs"]
        rows = [[n.op, n.name, str(n.target), str(n.args), str(n.kwargs)] for n in self.nodes]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(5)]
        for row in [head, ["-" * w for w in widths], *rows]:
            print("  ".join(text.ljust(w) for text, w in zip(row, widths)).rstrip())

    def python_code(self, root_module: str, *, verbose: bool = False) -> PythonCode:
        """Returns the function forward that computes the graph. root_module: its first argument."""
        return Writer(self, root_module).code()


class Insertion:
    """A place for new nodes, which inserting_before() and inserting_after() return."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.former = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.former


class Behind:
    """Inserts nodes behind the last one that it inserted."""

    def __init__(self, last: Node) -> None:
        self.last = last

    def __call__(self, node: Node) -> None:
        self.last.append(node)
        self.last = node


class NodeList:
    """The nodes of a graph, in order."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(NodeList(self.graph, "_prev" if self.direction == "_next" else "_next"))


class Reference:
    """The number of a node, in saved arguments."""

    def __init__(self, number: int) -> None:
        self.number = number


def saved(graph: Graph) -> list[tuple[Any, ...]]:
    """Returns the nodes of a graph as rows that can be pickled."""
    numbers = {node: i for i, node in enumerate(graph.nodes)}

    def reference(node: Node) -> Any:
        return Reference(numbers[node])

    return [
        (n.op, n.name, n.target, map_arg(n.args, reference), map_arg(n.kwargs, reference), n.type)
        for n in graph.nodes
    ]


def restored(rows: list[tuple[Any, ...]]) -> Graph:
    """Returns the graph of rows that saved() has made."""
    graph = Graph()
    made: list[Node] = []

    def node(x: Any) -> Any:
        return made[x.number] if isinstance(x, Reference) else x

    for op, name, target, args, kwargs, kind in rows:
        args, kwargs = map_aggregate(args, node), map_aggregate(kwargs, node)
        made.append(graph.create_node(op, target, args, kwargs, name, kind))
    return graph
