"""The nodes of the autograd graph, as in torch.autograd.graph."""
from __future__ import annotations

import re
from ctypes import c_int64
from functools import partial
from threading import Lock, get_ident
from typing import Any, Callable, Iterable, Sequence
from weakref import WeakSet, WeakValueDictionary

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


NAMES = {  # of an operator's node in PyTorch, where it is not made of the operator's name
    "clamp": "ClampBackward1",
    "copy_": "CopyBackwards",
    "copy_slices": "CopySlices",
    "div_true": "DivBackward0",
    "gated": "GluBackward0",
    "gelu_exact": "GeluBackward0",
    "linear_rows": "AddmmBackward0",
    "logsigmoid": "LogSigmoidBackward0",
    "matmul_stack": "MmBackward0",
    "max_pool2d": "MaxPool2DWithIndicesBackward0",
    "max_pool3d": "MaxPool3DWithIndicesBackward0",
    "native_attention": "ScaledDotProductFlashAttentionForCpuBackward0",
    "native_cross_entropy": "NllLossBackward0",
    "native_ctc_loss": "CtcLossBackward0",
    "native_hardtanh": "HardtanhBackward0",
    "native_inv": "LinalgInvExBackward0",
    "native_log_softmax": "LogSoftmaxBackward0",
    "native_nll_loss": "NllLossBackward0",
    "native_softmax": "SoftmaxBackward0",
    "native_solve": "LinalgSolveExBackward0",
    "norm": "LinalgVectorNormBackward0",
    "pow_number": "PowBackward0",
    "rest_floor": "RemainderBackward0",
    "rest_trunc": "FmodBackward0",
    "round_even": "RoundBackward0",
    "rsub": "RsubBackward1",
    "scatter_fill": "ScatterBackward1",
    "selu": "EluBackward0",
    "to_dtype": "ToCopyBackward0",
}
OF_PAIRS = {"max": "MaximumBackward0", "min": "MinimumBackward0"}
REDUCED = {"max": "10", "min": "10", "sum": "01", "mean": "01", "prod": "01"}  # to 0-d; by dim
LINALG = ("native_det", "native_eig", "native_eigh", "native_qr", "native_slogdet", "native_svd")
classes: dict[str, type[Node]] = {}


def pytorchs_name(op: str, num_inputs: int, ndim: int | None) -> str:
    """Returns PyTorch's name of an operator's node.

    ndim: the number of dimensions of the result; None if it is not at hand.
    """
    if op[:1].isupper():  # a Function
        return op + "Backward"
    if num_inputs == 2 and op in OF_PAIRS:
        return OF_PAIRS[op]
    if op == "matmul_stack" and ndim is not None and ndim > 2:
        return "BmmBackward0"
    if op in NAMES:
        return NAMES[op]
    if op in LINALG:
        op = op.replace("native", "linalg")
    words = re.sub(r"(?<=\d)[a-z]", lambda letter: letter[0].upper(), op).split("_")
    form = REDUCED[op][bool(ndim)] if op in REDUCED and ndim is not None else "0"
    return "".join(word[:1].upper() + word[1:] for word in words) + "Backward" + form


def grad_fn_of(tensor: Tensor) -> Node | None:
    """Returns the operator that computed a tensor."""
    node = result(Node, "tt_tensor_grad_fn", tensor)
    return None if node is None else named(node, tensor.ndim)


def named(node: Node, ndim: int | None = None) -> Node:
    """Gives a node the class of PyTorch's name: scripts print type(node).__name__."""
    name = pytorchs_name(NodeHandle.name(node), node.num_inputs(), ndim)
    if name not in classes:
        classes[name] = type(name, (Node,), {"__slots__": (), "__module__": __name__})
    node.__class__ = classes[name]
    return node


class Outputs(dict[int, Any]):
    """The gradients of an operator's results that a hook of its node is to see, by thread."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, address: int) -> None:
        super().__init__()
        self.of_node = watching.setdefault(address, WeakSet())  # is removed with the last of them
        self.of_node.add(self)


# address of a node -> those of its hooks
watching: WeakValueDictionary[int, WeakSet[Outputs]] = WeakValueDictionary()


class Node(NodeHandle):
    """A node of the autograd graph: a recorded operator."""

    __slots__ = ()

    def __init__(self) -> None:
        raise TypeError("Node: operators make nodes; a tensor's is its grad_fn")

    def name(self) -> str:
        """Returns the name in PyTorch's style: "AddBackward0"."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name.startswith("Copy") else name

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
                functions.append(None if leaf is None else AccumulateGrad(known_leaf(leaf)))
            else:
                functions.append(named(node))
        return tuple((function, 0) for function in functions)

    def register_hook(self, fn: Callable[..., Any]) -> HookHandle:
        """Calls fn(grad_inputs, grad_outputs) after the operator's formula has run. A result other
        than None replaces grad_inputs. Returns a handle whose remove() unregisters the hook.

        grad_inputs: the gradients of the inputs that require one. grad_outputs: those of the
        results, as hooks of register_prehook have left them. Both are tuples.
        """
        outputs = Outputs(self._address or 0)

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

    def register_prehook(self, fn: Callable[..., Any]) -> HookHandle:
        """Calls fn(grad_outputs) before the operator's formula runs. A result other than None
        replaces the gradients. Returns a handle whose remove() unregisters the hook."""
        address = self._address or 0

        def hook(grads: tuple[Tensor | None, ...]) -> Any:
            replaced = fn(grads)
            if replaced is not None:
                thread = get_ident()
                for outputs in list(watching.get(address, ())):
                    if thread in outputs:
                        outputs[thread] = replaced
            return replaced

        return super().register_prehook(hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {self._address:#x}>"


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
