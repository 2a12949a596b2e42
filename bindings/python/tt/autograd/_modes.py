"""Context managers of autograd.graph that watch the functions that a program calls."""
from __future__ import annotations

import weakref
from contextlib import contextmanager
from typing import Any, Callable, Iterator

import tt

from ..errors import AutogradError
from ..overrides import TorchFunctionMode
from .._tensor import Tensor
from ._saved import saved_tensors_hooks


def tensors_in(x: Any) -> Iterator[Tensor]:
    """Yields the tensors of an argument or a result."""
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, (tuple, list)):
        for item in x:
            yield from tensors_in(item)


# ---- node_creation_hook ----


class node_creation_hook(TorchFunctionMode):
    """Within the block, calls hook(node) for each node that functions add to the graph.

    Functions that C calls by itself are not seen: those of a backward with create_graph, and of
    layers that have no function in nn.functional, such as LSTM.
    """

    def __init__(self, hook: Callable[[tt.autograd.graph.Node], None]) -> None:
        super().__init__()
        self.hook = hook

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        before = {t.grad_fn for t in tensors_in((args, tuple(kwargs.values())))}
        result = func(*args, **kwargs)
        for node in new_nodes(result, before):
            self.hook(node)
        return result


def new_nodes(
    result: Any, before: set[tt.autograd.graph.Node | None]
) -> list[tt.autograd.graph.Node]:
    """Returns the nodes of a result that are not behind those of the arguments, in the order in
    which they were made."""
    from .graph import Node

    found: dict[tt.autograd.graph.Node, None] = {}
    stack: list[Any] = [t.grad_fn for t in tensors_in(result)]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node not in before and node not in found:
            found[node] = None
            stack += [next_node for next_node, _ in node.next_functions]
    return list(reversed(found))


# ---- allow_mutation_on_saved_tensors ----


class Saved:
    """A tensor that an operator saved. value: its copy once it was about to be written."""

    def __init__(self, t: Tensor) -> None:
        self.value, self.version, self.copied = t, t._version, False

    def keep(self) -> None:
        """Takes a copy, before the tensor is written."""
        if not self.copied:
            self.value, self.copied = self.value.detach().clone(), True


class Mutations(TorchFunctionMode):
    """Copies saved tensors before functions write to their storage."""

    def __init__(self) -> None:
        super().__init__()
        self.by_storage: dict[int, weakref.WeakSet[Saved]] = {}
        self.open = True

    def pack(self, t: Tensor) -> Saved:
        saved = Saved(t)
        self.by_storage.setdefault(t._storage_data(), weakref.WeakSet()).add(saved)
        return saved

    def unpack(self, saved: Saved) -> Tensor:
        if not self.open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        if not saved.copied and saved.value._version != saved.version:
            raise AutogradError(
                "allow_mutation_on_saved_tensors: a saved tensor was written by C or through data"
            )
        return saved.value

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        for t in written_by(func, args, kwargs):
            for saved in list(self.by_storage.get(t._storage_data(), ())):
                saved.keep()
        return func(*args, **kwargs)

    def clear(self) -> None:
        """Forgets the tensors that were saved so far."""
        self.by_storage.clear()


def written_by(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """Returns the tensors that a call writes."""
    name = getattr(func, "__name__", "")
    in_place = name.endswith("_") and not name.endswith("__")
    written = list(tensors_in(kwargs.get("out")))
    if in_place or name in ("__setitem__", "__set__") or kwargs.get("inplace"):
        written += tensors_in(args[0] if args else kwargs.get("input"))
    return written


active: list[Mutations] = []


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Mutations]:
    """Within the block, tensors that were saved for backward may be written: they are copied before
    the first write. backward must run within the block, too."""
    if active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    mode = Mutations()
    active.append(mode)
    try:
        with saved_tensors_hooks(mode.pack, mode.unpack), mode:
            yield mode
    finally:
        active.pop()
        mode.open = False
        mode.clear()
