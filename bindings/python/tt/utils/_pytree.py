"""Nested structures of tuples, lists and dicts, with the API of torch.utils._pytree.

Subclasses of these are leaves, but for named tuples, OrderedDict, defaultdict and deque, and for
classes of register_pytree_node.
"""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Union

from .._class_name import class_name

Types = Union[type, tuple[type, ...], Callable[[Any], bool]]
PyTree = Context = object  # for hints
DICTS = (dict, OrderedDict, defaultdict)


class NodeDef(NamedTuple):
    """The functions that take structures of a class apart and build them."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], Any] | None = None


class MappingKey(NamedTuple):
    """The key of an item in a dict."""

    key: Any


class SequenceKey(NamedTuple):
    """The place of an item in a list or tuple."""

    idx: int


class GetAttrKey(NamedTuple):
    """The name of an attribute."""

    name: str


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Returns the values and the keys."""
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Iterable[Any]) -> dict[Any, Any]:
    """Returns the dict of these values and keys."""
    return dict(zip(context, values))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Returns pairs of a MappingKey and a value, and the keys."""
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _list_flatten(items: Iterable[Any]) -> tuple[list[Any], None]:
    """Returns the items, and no context."""
    return list(items), None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    """Returns the list of these values."""
    return list(values)


def _list_flatten_with_keys(items: Iterable[Any]) -> tuple[list[Any], None]:
    """Returns pairs of a SequenceKey and an item, and no context."""
    return [(SequenceKey(i), item) for i, item in enumerate(items)], None


SUPPORTED_NODES: dict[type, NodeDef] = {
    dict: NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    list: NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    tuple: NodeDef(tuple, _list_flatten, lambda items, context: tuple(items)),
}
registered: dict[type, NodeDef] = {}  # those of register_pytree_node


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
    **options: Any,
) -> None:
    """Makes objects of a class structures. flatten_fn returns the items of an object and a context,
    which is compared; unflatten_fn(items, context) builds it again. Other arguments, for files, are
    ignored. Raises ValueError if the class has been registered."""
    if cls in registered:
        raise ValueError(f"register_pytree_node: {cls} is registered already")
    node = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    registered[cls] = SUPPORTED_NODES[cls] = node


_register_pytree_node = register_pytree_node


@dataclass(frozen=True)
class TreeSpec:
    """The form of a structure without its leaves. type: of the structure, None of a leaf; context:
    what is needed to build one, as the keys of a dict; children_specs: the forms of its items."""

    type: Any
    context: Any = None
    children_specs: tuple[TreeSpec, ...] = ()

    def is_leaf(self) -> bool:
        return self.type is None

    @property
    def num_children(self) -> int:
        return len(self.children_specs)

    @property
    def num_leaves(self) -> int:
        return 1 if self.is_leaf() else sum(child.num_leaves for child in self.children_specs)

    @property
    def num_nodes(self) -> int:
        """The number of structures and leaves, the whole included."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Returns the structure of this form with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Returns what tree has where this form has leaves: leaves or structures. The keys of dicts
        may be in another order."""
        if self.is_leaf():
            return [tree]
        kind = kind_of(tree)
        if kind is not self.type and not (kind in DICTS and self.type in DICTS):
            raise ValueError(f"flatten_up_to: {class_name(tree)} must be {self.type.__name__}")
        items, context = items_of(tree, kind)
        if kind in DICTS:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(tree) != set(keys):
                raise ValueError(f"flatten_up_to: the keys are {list(tree)}: must be {list(keys)}")
            items = [tree[key] for key in keys]
        elif kind in registered and context != self.context:
            raise ValueError(f"flatten_up_to: the context is {context!r}: must be {self.context!r}")
        if len(items) != self.num_children:
            raise ValueError(f"flatten_up_to: {len(items)} items: must be {self.num_children}")
        pairs = zip(self.children_specs, items)
        return [leaf for child, item in pairs for leaf in child.flatten_up_to(item)]


class LeafSpec(TreeSpec):
    """The form of a leaf."""

    def __init__(self) -> None:
        super().__init__(None)


def kind_of(tree: Any) -> Any:
    """Returns the class of a structure that has items, or None for a leaf."""
    kind = type(tree)
    if kind in (tuple, list, deque, *DICTS) or kind in registered:
        return kind
    return kind if isinstance(tree, tuple) and hasattr(tree, "_fields") else None


def _get_node_type(tree: Any) -> Any:
    """Returns the class of a structure that has items, namedtuple for named tuples."""
    kind = kind_of(tree)
    return namedtuple if kind is not None and hasattr(kind, "_fields") else kind or type(tree)


def is_namedtuple_instance(obj: Any) -> bool:
    """Returns whether obj is a named tuple."""
    return isinstance(obj, tuple) and hasattr(obj, "_fields")


def is_structseq_instance(obj: Any) -> bool:
    """Returns whether obj is a structure of CPython, such as os.stat_result. Results of operators
    with several tensors are named tuples."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return isinstance(obj, tuple) and all(isinstance(getattr(obj, n, None), int) for n in counts)


def _is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Returns whether tree has no items."""
    return kind_of(tree) is None or (is_leaf is not None and is_leaf(tree))


def items_of(tree: Any, kind: Any) -> tuple[list[Any], Any]:
    """Returns the items of a structure and its context."""
    if kind in registered:
        items, context = registered[kind].flatten_fn(tree)
        return list(items), context
    if kind not in DICTS:
        return list(tree), tree.maxlen if kind is deque else None
    keys = list(tree)
    return list(tree.values()), (tree.default_factory, keys) if kind is defaultdict else keys


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """Returns the leaves of a structure and its form.

    is_leaf: a function that says of a structure whether it counts as a leaf.
    """
    leaves: list[Any] = []
    return leaves, flatten_into(leaves, tree, is_leaf)


def flatten_into(leaves: list[Any], tree: Any, is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    """Appends the leaves of a structure. Returns its form."""
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return LeafSpec()
    items, context = items_of(tree, kind)
    return TreeSpec(kind, context, tuple(flatten_into(leaves, x, is_leaf) for x in items))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Returns the structure of a form with these leaves."""
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: leaves has length {len(given)}: must be {treespec.num_leaves}"
        )
    return built(iter(given), treespec)


def built(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    """Returns the structure of a form with the next leaves."""
    if spec.is_leaf():
        return next(leaves)
    items = [built(leaves, child) for child in spec.children_specs]
    if spec.type in registered:
        return registered[spec.type].unflatten_fn(items, spec.context)
    if spec.type is deque:
        return deque(items, maxlen=spec.context)
    if spec.type is defaultdict:
        factory, keys = spec.context
        return defaultdict(factory, zip(keys, items))
    if spec.type in DICTS:
        return spec.type(zip(spec.context, items))
    return spec.type(*items) if hasattr(spec.type, "_fields") else spec.type(items)


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """Returns a leaf of tree for each leaf of the form, or None if tree has another form. A leaf of
    tree stands for all leaves of what the form has there."""
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or kind_of(tree) is not treespec.type:
        return None
    items, context = items_of(tree, treespec.type)
    if len(items) != treespec.num_children or context != treespec.context:
        return None
    flat: list[Any] = []
    for item, child in zip(items, treespec.children_specs):
        leaves = _broadcast_to_and_flatten(item, child, is_leaf)
        if leaves is None:
            return None
        flat += leaves
    return flat


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Returns whether tree has no items, or is_leaf says so."""
    return _is_leaf(tree, is_leaf)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Returns the leaves of a structure."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """Yields the leaves of a structure."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Returns the form of a structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Returns the structure of func(leaf, …). rests: structures that have this form or a deeper
    one; what they have where tree has leaves are further arguments."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten(map(func, leaves, *others), spec)


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Calls func(leaf, …) for what it does, as tree_map. Returns tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def keyed_items(tree: Any, kind: Any) -> list[tuple[Any, Any]]:
    """Returns the items of a structure with their keys."""
    if kind in registered:
        with_keys = registered[kind].flatten_with_keys_fn
        if with_keys is None:
            raise ValueError(f"{kind} is registered without flatten_with_keys_fn")
        return list(with_keys(tree)[0])
    if kind in DICTS:
        return [(MappingKey(key), value) for key, value in tree.items()]
    if hasattr(kind, "_fields"):
        return [(GetAttrKey(name), getattr(tree, name)) for name in kind._fields]
    return [(SequenceKey(i), item) for i, item in enumerate(tree)]


def leaves_with_path(
    tree: Any, path: tuple[Any, ...], is_leaf: Callable[[Any], bool] | None
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        yield path, tree
        return
    for key, item in keyed_items(tree, kind):
        yield from leaves_with_path(item, (*path, key), is_leaf)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[tuple[Any, ...], Any]]:
    """Returns pairs of a path and a leaf. A path has a MappingKey, SequenceKey or GetAttrKey for
    each structure around the leaf, the outermost first."""
    return list(leaves_with_path(tree, (), is_leaf))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """Returns pairs of a path and a leaf, and the form of the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Returns the structure of func(path, leaf, …). See tree_map."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    values = [func(*pair, *rest) for pair, *rest in zip(pairs, *others)]
    return tree_unflatten(values, spec)


def keystr(path: Iterable[Any]) -> str:
    """Returns a path as it is written in Python: "['a'][0].name"."""
    return "".join(
        f".{key.name}" if isinstance(key, GetAttrKey) else f"[{key[0]!r}]" for key in path
    )


def selected(types: Types) -> Callable[[Any], bool]:
    """Returns a function that says whether a leaf is of these types, or satisfies a condition."""
    if isinstance(types, (type, tuple)):
        kinds = types
        return lambda x: isinstance(x, kinds)
    return types


def tree_map_only(
    types: Types,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Applies func to the leaves of these types, and keeps the others."""
    chosen = selected(types)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def tree_map_only_(
    types: Types,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls func for the leaves of these types. Returns tree."""
    tree_map_only(types, func, tree, is_leaf)
    return tree


def tree_all_only(
    types: Types,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """Returns whether pred is true of all leaves of these types."""
    return all(map(pred, filter(selected(types), tree_leaves(tree, is_leaf))))


def tree_any_only(
    types: Types,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """Returns whether pred is true of a leaf of these types."""
    return any(map(pred, filter(selected(types), tree_leaves(tree, is_leaf))))


def tree_all(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Returns whether pred is true of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Returns whether pred is true of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))
