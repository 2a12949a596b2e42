"""Interpreter runs a traced graph node by node; Transformer makes another graph of it."""
from __future__ import annotations

from typing import Any, Iterator

from .. import _interception
from ..nn.module import Module
from ._code import last_uses
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Proxy
from ._symbolic_trace import Tracer

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the nodes of a GraphModule. A subclass changes what happens at a node: it overrides
    run_node, or a method that has the name of an op.

    garbage_collect_values: drops values that no later node reads
    graph: instead of that of the module
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph = graph if graph is not None else module.graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Runs the graph with these inputs. initial_env: values of nodes, which do not run."""
        self.env = dict(initial_env or {})
        self.args_iter: Iterator[Any] = iter(args)
        drops = last_uses(self.graph) if self.garbage_collect_values else {}
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as e:
                note = f"While executing {node.format_node()}"
                if self.extra_traceback and note not in str(e):
                    e.args = (f"{e.args[0]}\n\n{note}", *e.args[1:]) if e.args else (note,)
                raise
            for unused in drops.get(node, ()):
                del self.env[unused]
            if node.op == "output":
                return self.env[node]
        return None

    def run_node(self, n: Node) -> Any:
        """Returns the value of a node: that of the method of its op."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the next input, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        missing = object()
        value = next(self.args_iter, missing)
        if value is not missing:
            return value
        if not args:
            raise RuntimeError(
                f"Expected positional argument for parameter {target}: it is missing"
            )
        return args[0]

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a method of args[0]."""
        obj, *rest = args
        return getattr(obj, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Returns an attribute of the module by its dotted name."""
        found: Any = self.module
        for part in target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {target}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> Any:
        """Returns the arguments of a node as values."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Returns arguments with values in place of nodes."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} reads {node}, which has no value")
            return self.env[node]

        return map_arg(args, value)


class Transformer(Interpreter):
    """Makes a new graph by running the nodes with proxies. A subclass overrides call_function and
    the like to replace what it meets."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.tracer = TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts an input."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts the read of an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts the call of a submodule."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts the call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Returns a module with the new graph."""
        _interception.begin()
        try:
            result = super().run(enable_io_processing=False)
        finally:
            _interception.end()
        if result is not None:

            def node_of(x: Any) -> Any:
                return x.node if isinstance(x, Proxy) else x

            from .node import map_aggregate

            self.new_graph.output(map_aggregate(result, node_of))
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)


class TransformerTracer(Tracer):
    """Records into the new graph of a Transformer. All modules are leaves."""

    def __init__(self, graph: Graph, root: Module) -> None:
        super().__init__()
        self.graph, self.root = graph, root

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True
