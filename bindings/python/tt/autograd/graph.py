"""The nodes of the autograd graph, as in torch.autograd.graph."""
from __future__ import annotations

from ctypes import c_int64
from functools import partial
from threading import Lock, get_ident
from typing import Any, Callable, Iterable, Sequence

from .._handles import NodeHandle
from .._hooks import HookHandle
from .._lib import result
from .._tensor import Tensor
from ._edges import GradientEdge, get_gradient_edge
from ._modes import allow_mutation_on_saved_tensors, node_creation_hook
from ._saved import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "node_creation_hook",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


PYTORCHS = {  # name of an operator -> what PyTorch calls its node after
    "div_true": "div",
    "gelu_exact": "gelu",
    "linear_rows": "addmm",
    "matmul_stack": "mm",
    "native_cross_entropy": "nll_loss",
    "native_log_softmax": "log_softmax",
    "native_softmax": "softmax",
    "pow_number": "pow",
}


class Node(NodeHandle):
    """A node of the autograd graph: a recorded operator."""

    __slots__ = ()

    def __init__(self) -> None:
        raise TypeError("Node: operators make nodes; a tensor's is its grad_fn")

    def name(self) -> str:
        """Returns the name in PyTorch's style: "AddBackward0"."""
        op = PYTORCHS.get(super().name(), super().name())
        if op[:1].isupper():  # a Function
            return op + "Backward"
        return "".join(part[:1].upper() + part[1:] for part in op.split("_")) + "Backward0"

    @property
    def next_functions(self) -> tuple[tuple[Node | AccumulateGrad | None, int], ...]:
        """(node, 0) for each input: an AccumulateGrad for a leaf, None for an input that requires
        no gradient."""
        from .._tensor import known_leaf, tensor_result

        functions: list[Node | AccumulateGrad | None] = []
        for i in range(self.num_inputs()):
            node = result(Node, "tt_node_next", self, c_int64(i))
            if node is None:
                leaf = tensor_result("tt_node_leaf", self, c_int64(i))
                node = None if leaf is None else AccumulateGrad(known_leaf(leaf))
            functions.append(node)
        return tuple((function, 0) for function in functions)

    def register_hook(self, fn: Callable[..., Any]) -> HookHandle:
        """Calls fn(grad_inputs, grad_outputs) after the operator's formula has run. A result other
        than None replaces grad_inputs. Returns a handle whose remove() unregisters the hook.

        grad_inputs: the gradients of the inputs that require one. grad_outputs: those of the
        results. Both are tuples.
        """
        outputs: dict[int, Any] = {}  # of the backward that each thread runs

        def before(grads: tuple[Tensor | None, ...]) -> None:
            outputs[get_ident()] = grads

        def after(grads: tuple[Tensor | None, ...]) -> Any:
            return fn(grads, outputs.pop(get_ident()))

        first = super().register_prehook(before)
        last = super().register_hook(after)

        def end() -> None:
            first.remove()
            last.remove()

        return HookHandle(end)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {self._address:#x}>"


class AccumulateGrad:
    """The end of a graph: backward adds the gradient that arrives to the .grad of a leaf.

    variable: the leaf.
    """

    __slots__ = ("variable",)

    next_functions = ()
    metadata: dict[Any, Any] = {}

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        """Returns "torch::autograd::AccumulateGrad", as PyTorch does."""
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, fn: Callable[..., Any]) -> HookHandle:
        """Calls fn((), (grad,)) after the gradient grad was added to .grad; its result is ignored.
        Returns a handle whose remove() unregisters the hook."""
        arrived: dict[int, Tensor] = {}  # in the backward that each thread runs

        def before(grad: Tensor) -> None:
            arrived[get_ident()] = grad

        def after(_: Tensor) -> None:
            fn((), (arrived.pop(get_ident()),))

        first = self.variable.register_hook(before)
        last = self.variable.register_post_accumulate_grad_hook(after)

        def end() -> None:
            first.remove()
            last.remove()

        return HookHandle(end)

    def register_prehook(self, fn: Callable[..., Any]) -> HookHandle:
        """Calls fn((grad,)) before the gradient is accumulated. A result other than None, a tensor
        or a tuple of one, replaces the gradient. Returns a handle whose remove() unregisters the
        hook."""

        def hook(grad: Tensor) -> Tensor | None:
            replaced = fn((grad,))
            return replaced[0] if isinstance(replaced, tuple) else replaced

        return self.variable.register_hook(hook)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AccumulateGrad) and self.variable._address == other.variable._address
        )

    def __hash__(self) -> int:
        return hash(self.variable._address)

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {self.variable._address:#x}>"


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Counts a write to a tensor, or to several, that tt does not see: backward then refuses values
    that were saved before it."""
    from .._tensor import Tensor

    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t.detach().as_strided((0,), (1,)).zero_()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], Any], *, mode: str = "all"
) -> HookHandle:
    """Registers a function that is called once per backward with gradients of several tensors.

    mode: "all": fn receives the list of all gradients, and is not called if backward does not reach
    all tensors; "any": fn receives the first gradient. Returns a handle whose remove() unregisters
    it.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode is {mode!r}: must be 'all' or 'any'")
    watched = [t for t in tensors if t.requires_grad]
    if not watched:
        raise RuntimeError("register_multi_grad_hook: no tensor requires a gradient")
    n = len(watched)  # the hooks must not refer to the tensors, which own them
    lock = Lock()
    received: dict[int, Tensor | None] = {}

    def seen(index: int, grad: Tensor) -> None:
        with lock:
            if index in received:  # of a backward that did not reach all of them, or the next one
                received.clear()
            received[index] = grad if mode == "all" else None
            first, last = len(received) == 1, len(received) == n
            grads = [received.get(i) for i in range(n)]
            if last:
                received.clear()
        if mode == "any" and first:
            fn(grad)
        elif mode == "all" and last:
            fn(grads)

    handles = [t.register_hook(partial(seen, i)) for i, t in enumerate(watched)]

    def end() -> None:
        for handle in handles:
            handle.remove()

    return HookHandle(end)
