"""The nodes of the autograd graph, as in torch.autograd.graph."""
from __future__ import annotations

import re
from ctypes import c_char, c_int64
from functools import partial
from json import loads
from threading import Lock, get_ident
from typing import Any, Callable, Iterable, Sequence
from weakref import WeakSet, WeakValueDictionary

from .._handles import NodeHandle
from .._hooks import HookHandle
from .._lib import filled, kept, result
from .._tensor import Tensor, tensor_result
from .._types import DTYPES, device
from ._edges import GradientEdge, get_gradient_edge
from ._modes import allow_mutation_on_saved_tensors, node_creation_hook
from ._nodes import WITH_NUMBER, computed, needs_description, pytorchs_name, value_names
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


classes: dict[str, type[Node]] = {}


def grad_fn_of(tensor: Tensor) -> Node | None:
    """Returns the operator that computed a tensor."""
    node = result(Node, "tt_tensor_grad_fn", tensor)
    return None if node is None else named(node)


def named(node: Node) -> Node:
    """Gives a node the class of PyTorch's name: scripts print type(node).__name__."""
    op = NodeHandle.name(node)
    about = node._described() if needs_description(op) else None
    if about is not None and "user" in about:  # a Function's
        name = op + "Backward"
    else:
        name = pytorchs_name(op, node.num_inputs(), about)
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


metadata_of: dict[int, dict[Any, Any]] = {}  # by address of the node


class KeepsMetadata:
    """A hook that ends with its node, and with it the node's metadata."""

    __slots__ = ("address", "found", "all")

    def __init__(self, address: int) -> None:
        self.address = address
        self.found: dict[Any, Any] = {}
        self.all = metadata_of  # modules end before nodes
        self.all[address] = self.found

    def __call__(self, _: Any) -> None:
        """Sees gradients."""

    def __del__(self) -> None:
        if self.all.get(self.address) is self.found:
            del self.all[self.address]


NOT_FINITE = re.compile(r"(?<=[:,\[])-?(inf|nan)")
FOR_JSON = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


class Node(NodeHandle):
    """A node of the autograd graph: a recorded operator.

    _saved_self, _saved_result ...: what it saved for its gradient, by PyTorch's names. A Function's
    node has the attributes of its ctx.
    """

    __slots__ = ()

    def __init__(self) -> None:
        raise TypeError("Node: operators make nodes; a tensor's is its grad_fn")

    def name(self) -> str:
        """Returns the name in PyTorch's style: "AddBackward0"."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name.startswith("Copy") else name

    def _described(self) -> dict[str, Any]:
        """Returns what C knows of the node."""
        text = filled(c_char, "tt_node_describe", self, cap=1024).decode()
        head, key, values = text.partition('"saved":')  # names are quoted, they do not have this
        if "inf" in values or "nan" in values:
            values = NOT_FINITE.sub(lambda m: FOR_JSON[m[0]], values)
        return loads(head + key + values)

    def _operator(self) -> tuple[str, dict[str, Any]]:
        """Returns the operator's name and what C knows of the node. The name is "", that of no
        operator, if the node shows no saved values: it is a Function's, or a backward of another
        thread holds it."""
        about = self._described()
        if "user" in about or about["held"]:
            return "", {**about, "saved": {}}
        return about["name"], about

    def _value(self, x: Any) -> Any:
        """Returns a saved value in Python's form."""
        if isinstance(x, list):
            return tuple(map(self._value, x))
        if not isinstance(x, dict):
            return x
        ((kind, content),) = x.items()
        if kind == "tensor":
            return self.saved(content)
        if kind == "tensors":
            first, n = content
            return tuple(self.saved(first + i) for i in range(n))
        if kind == "complex":
            return complex(*content)
        return DTYPES[content] if kind == "dtype" else device.of(*content)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            return self._find(name[len("_saved_") :])
        ctx = None if name.startswith("__") else self._function_ctx()
        if ctx is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(ctx, name)

    def _find(self, name: str) -> Any:
        """Returns a value that the operator saved, by its name in PyTorch."""
        op, about = self._operator()
        saved = about["saved"]
        with_number = op in WITH_NUMBER and self.num_inputs() == 1
        if with_number and name == "self":
            return None
        follow, names = computed(op, about), value_names(op, saved)
        if name not in follow and name not in names:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute '_saved_{name}'")
        if about["released"]:
            self.saved(0)  # raises
        if name in follow:
            return follow[name]({member: self._value(x) for member, x in saved.items()})
        from .._create import tensor

        value = self._value(saved[names[name]])
        return tensor(value) if with_number and name == "other" else value

    def _function_ctx(self) -> Any:
        """Returns the ctx of a Function's node; None for an operator's."""
        call = kept.get(self._described().get("user", 0))
        return None if call is None else getattr(call, "ctx", None)

    def __dir__(self) -> list[str]:
        op, about = self._operator()
        names = {*value_names(op, about["saved"]), *computed(op, about)}
        if op in WITH_NUMBER and "other" in names:
            names.add("self")
        return [*super().__dir__(), *sorted(f"_saved_{name}" for name in names)]

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that a Function saved for backward."""
        if self._function_ctx() is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'saved_tensors'")
        about = self._described()
        readable = not about["held"] and not about["released"]
        n = about["tensors"] if readable else 1  # the first raises unless it is readable
        return tuple(self.saved(i) for i in range(n))

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the application, which lives as long as the node."""
        address = self._address or 0
        found = metadata_of.get(address)
        if found is None:
            hook = KeepsMetadata(address)
            super().register_prehook(hook)
            found = hook.found
        return found

    @property
    def next_functions(self) -> tuple[tuple[Node | AccumulateGrad | None, int], ...]:
        """(node, number of its result) for each input: an AccumulateGrad for a leaf, None for an
        input that requires no gradient."""
        from .._tensor import known_leaf

        functions: list[Node | AccumulateGrad | None] = []
        for i in range(self.num_inputs()):
            node = result(Node, "tt_node_next", self, c_int64(i))
            if node is None:
                leaf = tensor_result("tt_node_leaf", self, c_int64(i))
                functions.append(None if leaf is None else AccumulateGrad(known_leaf(leaf)))
            else:
                functions.append(named(node))
        about = self._described()
        numbers = [*about["outputs"]]
        of_operator = "user" not in about
        if of_operator and about["name"] in WITH_NUMBER and len(functions) == 1:
            functions, numbers = [*functions, None], [*numbers, 0]
        return tuple(zip(functions, numbers))

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

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the application, which lives as long as the leaf."""
        return self.variable.__dict__.setdefault("_metadata_of_grad", {})

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
