"""Gradients through remote calls, with the names of torch.distributed.autograd.

Within a context, a call sends its tensors without history. The receiver's copies are leaves of its
own graph; backward sends their gradients back to where the tensors came from.
"""
from __future__ import annotations

import threading
from contextlib import contextmanager
from itertools import count
from typing import Any, Callable, Iterator, Sequence

from ... import _ops as ops
from ...autograd import grad as gradients
from ...autograd.graph import AccumulateGrad
from ..._tensor import Tensor
from ..._tree import with_tensors, without_tensors
from .._groups import is_available as is_available
from ..rpc import _calls as rpc

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]

contexts: dict[int, Context] = {}
numbers = count(1)
lock = threading.Lock()


class Current(threading.local):
    """The context of a thread, or None."""

    context: Context | None = None


current = Current()


class Context:
    """The part of a distributed backward that a worker keeps.

    sent: message -> tensors of this worker's graph that were sent with it
    received: leaf -> (worker, message, index): where its gradient goes
    gradients: leaf -> its gradient
    workers: those that know the context
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.sent: dict[Any, list[Tensor]] = {}
        self.received: dict[Tensor, tuple[int, Any, int]] = {}
        self.gradients: dict[Tensor, Tensor] = {}
        self.workers: set[int] = set()
        self.lock = threading.Lock()

    def send(self, message: Any, structure: Any) -> Any:
        """Returns a structure with its tensors taken off the graph: (structure, tensors, which
        require a gradient)."""
        tensors: list[Tensor] = []
        shape = without_tensors(structure, tensors)
        self.sent[message] = tensors
        return shape, [t.detach() for t in tensors], [t.requires_grad for t in tensors]

    def receive(self, worker: int, message: Any, packed: Any) -> Any:
        """Returns a structure that was sent, with leaves in it."""
        shape, tensors, flags = packed
        leaves = [t.requires_grad_(flag) for t, flag in zip(tensors, flags)]
        with self.lock:
            for index, leaf in enumerate(leaves):
                if leaf.requires_grad:
                    self.received[leaf] = worker, message, index
        return with_tensors(shape, leaves)

    def add(self, leaf: Tensor, grad: Tensor) -> None:
        with self.lock:
            known = self.gradients.get(leaf)
            self.gradients[leaf] = grad if known is None else known + grad


DistAutogradContext = Context


def find(number: int) -> Context:
    with lock:
        return contexts.setdefault(number, Context(number))


@contextmanager
def inside(one: Context | None) -> Iterator[None]:
    before, current.context = current.context, one
    try:
        yield
    finally:
        current.context = before


@contextmanager
def context() -> Iterator[int]:
    """Within the block, remote calls are recorded for backward(). Yields the number of the
    context."""
    number = (rpc.current().info.id << 48) + next(numbers)
    one = find(number)
    try:
        with inside(one):
            yield number
    finally:
        release(number)


def release(number: int) -> None:
    """Forgets a context here and on the workers that were called in it."""
    with lock:
        one = contexts.pop(number, None)
    for worker in one.workers if one is not None else ():
        rpc.rpc_async(worker, release, (number,))


# ---- calls ----


def call(
    one: Context, to: int, function: Callable[..., Any], args: Any, kwargs: Any, timeout: float
) -> Any:
    """Calls a function on another worker in a context. Returns the future of its result."""
    message = rpc.current().info.id, next(numbers)
    one.workers.add(to)
    packed = one.send((message, "arguments"), (tuple(args or ()), dict(kwargs or {})))
    given = one.number, rpc.current().info.id, message, function, packed
    with inside(None):
        future = rpc.rpc_async(to, serve, given, timeout=timeout)
    return rpc.mapped(future, lambda found: one.receive(to, (message, "result"), found))


def serve(number: int, caller: int, message: Any, function: Any, packed: Any) -> Any:
    """Answers call()."""
    one = find(number)
    one.workers.add(caller)
    args, kwargs = one.receive(caller, (message, "arguments"), packed)
    with inside(one):
        result = rpc.completed(function, args, kwargs)
    return one.send((message, "result"), result)


# ---- backward ----


def leaves_of(roots: Sequence[Tensor]) -> list[Tensor]:
    """Returns the leaves of the graphs of these tensors."""
    found: dict[Tensor, None] = {t: None for t in roots if t.is_leaf}
    stack: list[Any] = [t.grad_fn for t in roots if not t.is_leaf]
    seen = set()
    while stack:
        node = stack.pop()
        if isinstance(node, AccumulateGrad):
            found[node.variable] = None
        elif node is not None and node not in seen:
            seen.add(node)
            stack += [following for following, _ in node.next_functions]
    return list(found)


def propagate(number: int, roots: Sequence[Tensor], grads: Sequence[Tensor]) -> None:
    """Adds the gradients of this worker's leaves, and sends those of received ones on."""
    one = find(number)
    leaves = leaves_of(roots)
    found = gradients(roots, leaves, grads, retain_graph=True, allow_unused=True)
    on: dict[tuple[int, Any], dict[int, Tensor]] = {}
    for leaf, grad in zip(leaves, found):
        if grad is None:
            continue
        if leaf in one.received:
            worker, message, index = one.received[leaf]
            on.setdefault((worker, message), {})[index] = grad
        else:
            one.add(leaf, grad)
    with inside(None):
        waiting = [
            rpc.rpc_async(worker, arrived, (number, message, those))
            for (worker, message), those in on.items()
        ]
        for future in waiting:
            future.wait()


def arrived(number: int, message: Any, grads: dict[int, Tensor]) -> None:
    """Goes on from tensors that this worker has sent, with their gradients."""
    sent = find(number).sent[message]
    propagate(number, [sent[i] for i in grads], list(grads.values()))


def backward(context_id: int, roots: Sequence[Tensor], retain_graph: bool = False) -> None:
    """Computes the gradients of the sums of the roots, on all workers that the context has met.

    They are added to the context: see get_gradients. Graphs stay until the context ends.
    """
    if context_id not in contexts:
        raise RuntimeError(f"backward: there is no autograd context {context_id}")
    if not roots or any(root.numel() != 1 for root in roots):
        raise RuntimeError("backward: roots must be tensors of one element")
    propagate(context_id, list(roots), [ops.ones_like(root) for root in roots])


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """Returns the gradients that the context has for leaves of this worker."""
    if context_id not in contexts:
        raise RuntimeError(f"get_gradients: there is no autograd context {context_id}")
    return dict(contexts[context_id].gradients)


def _is_valid_context(context_id: int) -> bool:
    return context_id in contexts
