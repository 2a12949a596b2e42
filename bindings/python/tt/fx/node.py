"""Nodes of traced graphs."""
from __future__ import annotations

import builtins
import types
from typing import Any, Callable, Union

import tt

from .._interception import names
from .immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "map_aggregate", "map_arg"]

Target = Union[Callable[..., Any], str]
Argument = Any
OPS = "placeholder get_attr call_function call_module call_method output root".split()
RENAMED = {"_operator": "operator", "math": "math"}  # modules of C functions


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Returns a with fn applied to what its tuples, lists, dicts and slices contain."""
    if isinstance(a, tuple):
        items = [map_aggregate(x, fn) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Returns a with each Node replaced by fn(node)."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def qualified_name(function: Any) -> str:
    """Returns the name by which generated code calls a function, such as tt.nn.functional.pad."""
    name = getattr(function, "__name__", None) or getattr(type(function), "__name__")
    if getattr(builtins, name, None) is function:
        return str(name)
    if function in names:
        return names[function]
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{function.__objclass__.__module__}.{function.__objclass__.__name__}.{name}"
    module = getattr(function, "__module__", None) or "builtins"
    return f"{RENAMED.get(module, module)}.{name}"


class Node:
    """A step of a graph.

    op says what it does: "placeholder" is an input, "get_attr" reads a parameter, "call_function",
    "call_module" and "call_method" call target with args and kwargs, "output" returns args[0].
    users are the nodes that read the result. meta is a dict for passes.
    """

    def __init__(
        self,
        graph: tt.fx.Graph,
        name: str,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"Node: op is {op!r}: must be one of {', '.join(OPS)}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node: the target of a call_function is {target!r}: must be callable")
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(f"Node: the target of a {op} is {target!r}: must be a str")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._set_arguments(args, kwargs)

    # ---- place ----

    @property
    def next(self) -> Node:
        """The node after self; that after the last one is the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before self."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Moves x before self."""
        if x.graph is not self.graph:
            raise AssertionError("Node: moves a node into another graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves x behind self."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # ---- arguments ----

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments. Nodes in them are results of other nodes."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set_arguments(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by keyword."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set_arguments(self._args, kwargs)

    def _set_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that the arguments contain, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replaces a positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Inserts a positional argument before another one."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_arg: idx is {idx}: must be 0 to {len(self.args)}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replaces or adds an argument by keyword."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Replaces a node in the arguments."""

        def replaced(node: Node) -> Any:
            return new_input if node is old_input else node

        self._set_arguments(map_arg(self.args, replaced), map_arg(self.kwargs, replaced))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Makes all users of self read replace_with. Returns the nodes that changed.

        delete_user_cb: whether a user changes
        propagate_meta: copies self.meta, which replace_with must lack
        """
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self) -> bool:
        """Returns whether the node must stay although nothing reads its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            return name in IMPURE or name.endswith("_") and not name.endswith("__")
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_module":
            module = self.graph.owning_module
            return bool(getattr(module and module.get_submodule(self.target), "_is_impure", False))
        return False

    # ---- text ----

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        name = qualified_name(target)
        return f"builtins.{name}" if "." not in name else name

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: Any = None
    ) -> str:
        """Returns the line of the node in str(graph)."""
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}"
        target = self._pretty_print_target(self.target)
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target)
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        args, kwargs = shown(self.args), shown(self.kwargs)
        return f"{head}[target={target}](args = {args}, kwargs = {kwargs})"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a Node: pickle its graph")

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return memo.get(id(self), self)  # of the graph


IMPURE = {"_assert", "setitem", "manual_seed", "iadd", "isub", "imul", "itruediv"}


def shown(x: Any) -> str:
    """Returns arguments as str(graph) shows them."""
    if isinstance(x, Node):
        return f"%{x.name}"
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return "(" + ", ".join(map(shown, x)) + ("," if len(x) == 1 else "") + ")"
    if isinstance(x, list):
        return "[" + ", ".join(map(shown, x)) + "]"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k}: {shown(v)}" for k, v in x.items()) + "}"
    return str(x)
