"""Replaces parts of a traced graph that look like a pattern."""
from __future__ import annotations

from collections import namedtuple
from typing import Any, Callable

from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from ._symbolic_trace import symbolic_trace

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(namedtuple("Match", "anchor nodes_map")):
    """A found pattern: its result in the pattern, node of the pattern -> node of the graph."""

    __slots__ = ()


class ReplacedPatterns:
    """A replaced pattern: its result in the pattern, the nodes that matched, the new nodes."""

    def __init__(self, anchor: Node, nodes_map: dict[Node, Any], replacements: list[Node]) -> None:
        self.anchor, self.nodes_map, self.replacements = anchor, nodes_map, replacements


class InternalMatch:
    """A place where a pattern fits, as filters get it.

    anchors: the results of the pattern. returning_nodes: what they are in the graph.
    """

    def __init__(self, anchors: list[Node], nodes_map: dict[Node, Any]) -> None:
        self.anchors, self.nodes_map = anchors, nodes_map
        self.placeholder_nodes = [n for p, n in nodes_map.items() if p.op == "placeholder"]
        self.returning_nodes = [nodes_map[anchor] for anchor in anchors]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces in gm all parts that compute what `pattern` computes by what `replacement` does.

    Both are functions, modules or graphs with the same inputs. Nodes inside a part must have no
    users outside of it. Returns the matches; they do not overlap.
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in found]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
) -> list[ReplacedPatterns]:
    """Replaces parts of gm that match and pass all filters: filter(match, graph, pattern).

    ignore_literals: numbers and strings of the pattern match any others
    replacement_callback: called with (match, graph, pattern), returns the graph to insert
    """
    graph, wanted = gm.graph, graph_of(pattern)
    matches = []
    taken: set[Node] = set()
    for node in reversed(graph.nodes):
        match = Matcher(wanted, ignore_literals).match(node)
        if match is None or taken & set(inner_nodes(match)):
            continue
        if all(accepts(match, graph, wanted) for accepts in match_filters or ()):
            matches.append(match)
            taken |= set(inner_nodes(match))
    matches.reverse()
    renamed: dict[Node, Any] = {}
    replaced = []
    for match in matches:
        made = replacement_callback or (lambda *_: graph_of(replacement))
        replaced.append(replace(gm, match, made(match, graph, wanted), wanted, renamed))
    give_modules(gm, replacement)
    gm.recompile()
    return replaced


def graph_of(pattern: Any) -> Graph:
    """Returns the graph of a pattern."""
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


def inner_nodes(match: InternalMatch) -> list[Node]:
    """Returns the nodes of the graph that a pattern computes."""
    items = match.nodes_map.items()
    return [n for p, n in items if p.op != "placeholder" and isinstance(n, Node)]


class Matcher:
    """Compares a pattern with the nodes that end at one node."""

    def __init__(self, pattern: Graph, ignore_literals: bool) -> None:
        self.pattern, self.ignore_literals = pattern, ignore_literals
        self.found: dict[Node, Any] = {}

    def match(self, last: Node) -> InternalMatch | None:
        """Returns the match whose last result is the node `last`, or None."""
        results = self.pattern.output_node().all_input_nodes
        if not results or not self.same(results[-1], last):
            return None
        for other in results[:-1]:
            if other not in self.found and not self.find(other, last.graph):
                return None
        match = InternalMatch(results, dict(self.found))
        return match if self.is_closed(match, results) else None

    def find(self, pattern_node: Node, graph: Graph) -> bool:
        """Looks for a further result of the pattern anywhere."""
        for node in graph.nodes:
            before = dict(self.found)
            if self.same(pattern_node, node):
                return True
            self.found = before
        return False

    def is_closed(self, match: InternalMatch, results: list[Node]) -> bool:
        """Returns whether only the results of the match have users outside of it."""
        inner = set(inner_nodes(match))
        for p, n in match.nodes_map.items():
            if p.op in ("placeholder", "get_attr") or p in results or not isinstance(n, Node):
                continue
            if not inner.issuperset(n.users):
                return False
        return True

    def same(self, p: Any, n: Any) -> bool:
        """Returns whether the node n computes what p of the pattern does."""
        if not isinstance(p, Node):
            return self.same_value(p, n)
        if p in self.found:
            return self.found[p] is n
        if p.op == "placeholder":
            self.found[p] = n
            return True
        if not isinstance(n, Node) or p.op != n.op or p.target != n.target:
            return False
        self.found[p] = n
        if len(p.args) != len(n.args) or p.kwargs.keys() != n.kwargs.keys():
            return False
        return all(map(self.same, p.args, n.args)) and all(
            self.same(value, n.kwargs[key]) for key, value in p.kwargs.items()
        )

    def same_value(self, p: Any, n: Any) -> bool:
        if isinstance(p, (list, tuple)):
            same_kind = isinstance(n, (list, tuple)) and len(p) == len(n)
            return same_kind and all(map(self.same, p, n))
        if isinstance(p, slice) and isinstance(n, slice):
            parts = (p.start, n.start), (p.stop, n.stop), (p.step, n.step)
            return all(self.same(a, b) for a, b in parts)
        if isinstance(n, Node):
            return False
        return self.ignore_literals or type(p) is type(n) and bool(p == n)


def replace(
    gm: GraphModule,
    match: InternalMatch,
    replacement: Graph,
    pattern: Graph,
    renamed: dict[Node, Any],
) -> ReplacedPatterns:
    """Replaces one match. renamed: nodes that former replacements have removed -> new ones."""

    def current(x: Any) -> Any:
        while isinstance(x, Node) and x in renamed:
            x = renamed[x]
        return x

    inputs = [current(match.nodes_map[p]) for p in pattern.nodes if p.op == "placeholder"]
    wanted = [p for p in replacement.nodes if p.op == "placeholder"]
    if len(inputs) != len(wanted):
        raise RuntimeError(
            f"replace_pattern: the pattern has {len(inputs)} inputs, the replacement {len(wanted)}"
        )
    values: dict[Node, Any] = dict(zip(wanted, inputs))
    made = []
    with gm.graph.inserting_before(first_user(gm.graph, match, inputs)):
        for node in replacement.nodes:
            if node.op == "output":
                results = map_arg(node.args[0], values.__getitem__)
            elif node not in values:
                values[node] = gm.graph.node_copy(node, values.__getitem__)
                made.append(values[node])
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    for old, new in zip(match.returning_nodes, results):
        if isinstance(new, Node):
            inside = set(made)
            old.replace_all_uses_with(new, lambda user: user not in inside)
            renamed[old] = new
    inner = set(inner_nodes(match))
    for node in reversed(gm.graph.nodes):
        if node in inner and not node.users:
            gm.graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def first_user(graph: Graph, match: InternalMatch, inputs: list[Any]) -> Node:
    """Returns the first node that reads a result of the match, and follows all inputs."""
    inner = set(inner_nodes(match))
    users = {user for node in match.returning_nodes for user in node.users} - inner
    waiting = {x for x in inputs if isinstance(x, Node)}
    for node in graph.nodes:
        if node in users and not waiting:
            return node
        waiting.discard(node)
    return graph.output_node()


def give_modules(gm: GraphModule, replacement: Any) -> None:
    """Gives gm the submodules and tensors that the replacement names."""
    from ..nn.module import Module
    from .graph_module import copy_attribute

    if not isinstance(replacement, Module):
        return
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            if not has_attribute(gm, node.target):
                copy_attribute(replacement, gm, node.target)


def has_attribute(module: Any, path: str) -> bool:
    for part in path.split("."):
        module = getattr(module, part, None)
    return module is not None
