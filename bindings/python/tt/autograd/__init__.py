"""Gradients: backward, grad, grad modes, and functions with custom gradients.

Grad modes are per thread: another thread records, even if it is started in a no_grad block.
"""
from __future__ import annotations

from contextlib import ContextDecorator
from functools import wraps
from importlib import import_module
from inspect import isgeneratorfunction

from .._handles import backward as backward_all
from .._handles import is_anomaly_enabled, is_grad_enabled
from .._handles import grad as grad_of_one
from .._handles import switch_anomaly, switch_grad
from .._facts import TensorFacts
from .._layout import SparseGrads
from .._types import overload
from ._edges import tensors_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Generator, Sequence, TypeVar

    from .._tensor import Tensor
    from ._edges import GradientEdge
    from . import forward_ad as forward_ad
    from . import functional as functional
    from . import graph as graph
    from . import profiler as profiler

    F = TypeVar("F", bound=Callable[..., Any])
    Switch = Callable[[bool], int]

__all__ = [
    "Function",
    "GradcheckError",
    "Mode",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]

MODULES = ("forward_ad", "functional", "graph", "profiler")  # loaded when they are first used


def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
) -> None:
    """Computes the gradients of tensors and adds them to the .grad of the leaves.

    grad_tensors[i] is the gradient of tensors[i]; None: 1. retain_graph: keeps the graph for
    another backward; default: create_graph. create_graph: records the computation of the gradients.
    inputs: the tensors that receive gradients, by default all leaves; of the others, those that are
    no leaves retain their gradients from now on. grad_variables: the former name of grad_tensors.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("backward: takes either grad_tensors or grad_variables")
        grad_tensors = grad_variables
    receivers = tensors_of(inputs)
    if receivers is not None:
        receivers = [receivers] if isinstance(receivers, TensorFacts) else list(receivers)
        for t in receivers:
            if isinstance(t, TensorFacts) and not t.is_leaf:
                t.retain_grad()
    given = tensors_of(tensors), grad_tensors, retain_graph, create_graph, receivers
    if not SparseGrads.seen:
        backward_all(*given)
        return
    from .. import _sparse_grad

    with _sparse_grad.backward_that(accumulates=True, inputs=receivers):
        backward_all(*given)


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool | None = None,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Returns the gradients of outputs with respect to inputs, without changing .grad.

    grad_outputs[i] is the gradient of outputs[i]; None: 1. retain_graph: keeps the graph for
    another backward; default: create_graph. create_graph: records the computation of the gradients.
    allow_unused: returns None for an input on which the outputs do not depend, instead of raising;
    materialize_grads: returns zeros. only_inputs is ignored. is_grads_batched: grad_outputs and
    results have an additional first dimension, with one backward for each index.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: allow_unused is False: with materialize_grads it must be True")
    compute: Any = batched_grad if is_grads_batched else grad_of_one
    given = tensors_of(outputs), tensors_of(inputs), grad_outputs, retain_graph, create_graph
    options = {"allow_unused": allow_unused, "materialize_grads": materialize_grads}
    if not SparseGrads.seen:
        return compute(*given, **options)
    from .. import _sparse_grad

    with _sparse_grad.backward_that(accumulates=False):
        return compute(*given, **options)


def batched_grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any,
    retain_graph: bool | None,
    create_graph: bool | None,
    **options: Any,
) -> tuple[Any, ...]:
    """Returns the stacked gradients for the slices of grad_outputs."""
    from .. import _ops as ops

    given = list(grad_outputs) if isinstance(grad_outputs, (list, tuple)) else [grad_outputs]
    sizes = {g.shape[0] for g in given if g is not None and g.ndim}
    if len(sizes) != 1 or any(g is None or not g.ndim for g in given):
        raise RuntimeError(
            "grad: with is_grads_batched all grad_outputs must be tensors of the same first size"
        )
    keep = bool(create_graph) if retain_graph is None else retain_graph
    n = sizes.pop()
    if not n:
        raise RuntimeError("grad: grad_outputs of size 0 with is_grads_batched")
    rows = [
        grad_of_one(
            outputs, inputs, [g[i] for g in given], keep or i < n - 1, create_graph, **options
        )
        for i in range(n)
    ]
    return tuple(None if column[0] is None else ops.stack(column) for column in zip(*rows))


class Mode(ContextDecorator):
    """A mode of this thread within a block or, as a decorator, a function. It may be nested."""

    def __init__(self, on: bool, switch: Switch = switch_grad) -> None:
        self.on, self.switch = bool(on), switch
        self.previous: list[Any] = []

    def __enter__(self) -> None:
        self.previous.append(self.switch(self.on))

    def __exit__(self, *_: object) -> None:
        self.switch(self.previous.pop())

    def _recreate_cm(self) -> Mode:
        """Returns the context manager for one call of a decorated function."""
        return Mode(self.on, self.switch)

    def __call__(self, function: F) -> F:
        if not isgeneratorfunction(function):
            return super().__call__(function)

        @wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return (yield from self._resumed(function(*args, **kwargs)))

        return generator  # type: ignore[return-value]

    def _resumed(self, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Runs the generator's body in the mode, and the code between its values outside."""
        resume: Callable[[Any], Any] = generator.send
        given: Any = None
        try:
            while True:
                with self._recreate_cm():
                    value = resume(given)
                try:
                    resume, given = generator.send, (yield value)
                except GeneratorExit:
                    with self._recreate_cm():
                        generator.close()
                    raise
                except BaseException as e:
                    resume, given = generator.throw, e
        except StopIteration as end:
            return end.value


@overload
def no_grad(function: None = None) -> Mode:
    ...


@overload
def no_grad(function: F) -> F:
    ...


def no_grad(function: Any = None) -> Any:
    """Operators record no gradients in the block, or in the decorated function.

    The mode is per thread: other threads, even those started in the block, record as before.
    """
    return Mode(False) if function is None else Mode(False)(function)


@overload
def enable_grad(function: None = None) -> Mode:
    ...


@overload
def enable_grad(function: F) -> F:
    ...


def enable_grad(function: Any = None) -> Any:
    """Operators record gradients in the block, or in the decorated function, also within
    no_grad."""
    return Mode(True) if function is None else Mode(True)(function)


@overload
def inference_mode(mode: bool = True) -> Mode:
    ...


@overload
def inference_mode(mode: F) -> F:
    ...


def inference_mode(mode: Any = True) -> Any:
    """Equals no_grad(): tensors created in the block are ordinary. inference_mode(False) does
    nothing."""
    return no_grad(mode) if callable(mode) else Mode(not mode and is_grad_enabled())


class set_grad_enabled(Mode):
    """Switches recording on or off immediately; as a context manager, until the end of the
    block."""

    def __init__(self, mode: bool, switch: Switch = switch_grad) -> None:
        super().__init__(mode, switch)
        super().__enter__()

    def __enter__(self) -> None:
        self.switch(self.on)

    def __call__(self, function: F) -> F:
        """As a decorator, switches within the function only."""
        self.__exit__()
        return super().__call__(function)


def set_detect_anomaly(mode: bool, check_nan: bool = True) -> set_grad_enabled:
    """Makes backward raise at the first operator whose gradient contains nan, with its name.

    It takes effect immediately; as a context manager, until the end of the block.
    """
    return set_grad_enabled(mode and check_nan, switch_anomaly)


def detect_anomaly(check_nan: bool = True) -> set_grad_enabled:
    """Calls set_detect_anomaly(True)."""
    return set_detect_anomaly(True, check_nan)


if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in MODULES:
            raise AttributeError(f"module 'tt.autograd' has no attribute '{name}'")
        return import_module("." + name, __name__)


from .function import Function  # noqa: E402  (which needs the modes)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck  # noqa: E402
from .variable import Variable  # noqa: E402


def __dir__() -> list[str]:
    return __all__
