"""Activation checkpointing: intermediate results are recomputed in backward instead of stored.

With use_reentrant=False, tensors that operators save for backward are recomputed when backward
first needs them, and all kinds of gradients work as without a checkpoint. Otherwise backward runs
a nested backward: backward() accumulates the gradients of parameters that the function uses, but
autograd.grad returns only those of its arguments, and create_graph=True raises an error.
"""
from __future__ import annotations

import warnings
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial, wraps
from typing import Any, Callable, Iterable, Iterator

from .. import _ops as ops
from .._class_name import class_name
from .._tensor import Tensor
from .._tree import with_tensors, without_tensors
from ..amp.autocast_mode import (
    autocast,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)
from ..autograd import Function, backward, enable_grad, is_grad_enabled
from ..autograd._saved import saved_tensors_hooks
from ..errors import AutogradError
from ..random import get_rng_state, numbers_drawn, set_rng_state
from . import _selective
from ._selective import CheckpointPolicy as CheckpointPolicy
from ._selective import SelectiveCheckpointContext as SelectiveCheckpointContext
from ._selective import create_selective_checkpoint_contexts as create_selective_checkpoint_contexts

__all__ = [
    "CheckpointError",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


early_stops = [True]  # the argument of each set_checkpoint_early_stop whose block is open


class CheckpointError(RuntimeError):
    """The recomputation of a function differs from the first call."""


def no_contexts() -> tuple[Any, Any]:
    """Returns two context managers that do nothing."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = no_contexts,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Returns function(*args, **kwargs) without storing intermediate results for backward.

    Backward calls the function again with the same arguments, and with the same random numbers if
    preserve_rng_state. Arguments and results may contain tensors in lists, tuples and dicts.
    use_reentrant: see the module's documentation.
    context_fn: returns two context managers, for the first and for the second call.
    determinism_check: "default" raises CheckpointError if the shapes or dtypes of the second call
        differ; "none" does not check.
    early_stop: ends the second call as soon as it has computed all that backward needs.
    set_checkpoint_early_stop overrides early_stop; debug and respect_saved_tensors_hooks are
    ignored. Without a function, it is a decorator: @checkpoint(use_reentrant=False).
    """
    if function is None:
        return partial(
            checkpointed,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
            context_fn=context_fn,
            determinism_check=determinism_check,
            debug=debug,
            early_stop=early_stop,
        )
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint: determinism_check is {determinism_check!r}: must be 'default' or 'none'"
        )
    if not is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn()
    if use_reentrant is not False and isinstance(first, _selective.Selecting):
        raise ValueError("checkpoint: selective checkpoints need use_reentrant=False")
    tensors: list[Tensor] = []
    call = Recomputed()
    call.function, call.arguments = function, without_tensors((args, kwargs), tensors)
    call.rng = get_rng_state() if preserve_rng_state else None
    call.context, call.checked = second, determinism_check == "default"
    call.autocast = autocast_modes()
    start = numbers_drawn()
    if use_reentrant is False:
        frame = Frame(call, tensors, early_stop and early_stops[-1])
        with first, saved_tensors_hooks(frame.pack, frame.unpack):
            found = function(*args, **kwargs)
        call.draws = numbers_drawn() != start
        return found
    # the graph needs an input with a gradient: parameters that the function uses are not seen
    watched = ops.empty((0,)).requires_grad_()
    with first:
        results = Checkpoint.apply(call, watched, *tensors)
    call.draws = numbers_drawn() != start
    return with_tensors(call.results, list(results))


def checkpointed(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Returns a function whose calls are checkpoints with these options."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(function, *args, **options, **kwargs)

    return call


class Recomputed:
    """A function with its arguments, random state and contexts, for a second call in backward."""

    function: Callable[..., Any]
    arguments: Any
    results: Any
    rng: Tensor | None
    draws: bool = True  # False: the first call has drawn no numbers, so no state is set
    context: Any
    checked: bool
    autocast: list[autocast]

    @contextmanager
    def again(self) -> Iterator[None]:
        """Enters the modes and the random state of the second call for a block."""
        before = get_rng_state()
        rng = self.rng if self.draws else None
        try:
            if rng is not None:
                set_rng_state(rng)
            with ExitStack() as modes:
                for mode in (enable_grad(), *self.autocast, self.context):
                    modes.enter_context(mode)
                yield
        finally:
            if rng is not None:
                set_rng_state(before)

    def __call__(self, tensors: list[Tensor], results: list[Tensor]) -> Any:
        """Calls the function with tensors and appends the tensors that it returns to results.
        Returns the structure of what it returns."""
        args, kwargs = with_tensors(self.arguments, tensors)
        return without_tensors(self.function(*args, **kwargs), results)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Returns the CUDA devices of the tensors among args, and their generators' states."""
    places = [t.device for t in args if isinstance(t, Tensor)]
    devices = sorted({place.index or 0 for place in places if place.type == "cuda"})
    return devices, [get_rng_state() for _ in devices]


def set_device_states(
    devices: list[int], states: list[Tensor], *, device_type: str | None = None
) -> None:
    """Sets the states that get_device_states returned. All devices have one generator."""
    for state in states:
        set_rng_state(state)


def autocast_modes() -> list[autocast]:
    """Returns the autocast modes that are enabled."""
    return [
        autocast(kind, get_autocast_dtype(kind), True, is_autocast_cache_enabled())
        for kind in ("cpu", "cuda")
        if is_autocast_enabled(kind)
    ]


class Computed(BaseException):
    """Ends the second call early: all that backward needs has been computed."""


class Frame:
    """A call whose operators save numbers for backward instead of tensors.

    saved: (shape, dtype) of each saved tensor. recomputed: number -> tensor of the second call,
    until backward has read it. recent: the tensors that backward has read last.
    """

    RECENT = 8

    def __init__(self, call: Recomputed, arguments: list[Tensor], early_stop: bool) -> None:
        self.call, self.arguments, self.early_stop = call, arguments, early_stop
        self.saved: list[Any] = []
        self.recomputed: dict[int, Tensor] = {}
        self.recent: dict[int, Tensor] = {}

    def pack(self, t: Tensor) -> int:
        self.saved.append((tuple(t.shape), t.dtype))
        if _selective.active.running is not None:
            _selective.active.running.note(t)
        return len(self.saved) - 1

    def unpack(self, number: int) -> Tensor:
        if number in self.recent:
            return self.recent[number]
        if number not in self.recomputed:
            self.compute()
        t = self.recent[number] = self.recomputed.pop(number)
        if len(self.recent) > self.RECENT:
            del self.recent[next(iter(self.recent))]
        return t

    def compute(self) -> None:
        """Calls the function again and stores the tensors that its operators save."""
        self.recomputed.clear()
        number = 0

        def keep(t: Tensor) -> Tensor:
            nonlocal number
            if number < len(self.saved):
                self.recomputed[number] = self.checked(t, number)
            number += 1
            if self.early_stop and number == len(self.saved):
                raise Computed
            return t

        leaves = [t.detach().requires_grad_(t.requires_grad) for t in self.arguments]
        try:
            with _selective.keeping(keep), self.call.again(), saved_tensors_hooks(
                keep, lambda t: t
            ):
                self.call(leaves, [])
        except Computed:
            return
        if number != len(self.saved):
            raise CheckpointError(
                f"checkpoint: the function saved {len(self.saved)} tensors for backward, and "
                f"{number} when it was computed again"
            )

    def checked(self, t: Tensor, number: int) -> Tensor:
        again = (tuple(t.shape), t.dtype)
        if self.call.checked and again != self.saved[number]:
            raise CheckpointError(
                f"checkpoint: the function saved {self.saved[number]} as tensor {number}, and "
                f"{again} when it was computed again"
            )
        return t


class Checkpoint(Function):
    """A function that is called again in backward."""

    @staticmethod
    def forward(ctx: Any, call: Recomputed, watched: Tensor, *tensors: Tensor) -> Any:
        results: list[Tensor] = []
        call.results = call(list(tensors), results)
        ctx.call = call
        ctx.save_for_backward(*tensors)
        ctx.shapes = [(tuple(r.shape), r.dtype) for r in results]
        whole = [r for r in results if not (r.dtype.is_floating_point or r.dtype.is_complex)]
        ctx.mark_non_differentiable(*whole)
        ctx.set_materialize_grads(False)
        return tuple(r.view_as(r) if any(r is t for t in tensors) else r for r in results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        if is_grad_enabled():
            raise AutogradError("checkpoint: backward with create_graph=True is not supported")
        call = ctx.call
        needed = ctx.needs_input_grad[2:]
        leaves = [t.detach().requires_grad_(n) for t, n in zip(ctx.saved_tensors, needed)]
        results: list[Tensor] = []
        with call.again():
            call(leaves, results)
        shapes = [(tuple(r.shape), r.dtype) for r in results]
        if call.checked and shapes != ctx.shapes:
            raise CheckpointError(
                f"checkpoint: the function returned {ctx.shapes}, and {shapes} when it was "
                "computed again"
            )
        pairs = [(r, g) for r, g in zip(results, grads) if g is not None and r.requires_grad]
        if pairs:
            backward([r for r, _ in pairs], [g for _, g in pairs])
        return None, None, *(leaf.grad for leaf in leaves)


def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Calls functions, or the layers of a Sequential, in order. They are divided into segments, all
    of which but the last are checkpointed. kwargs: preserve_rng_state."""
    layers = list(functions)
    size = len(layers) // segments
    for start in range(0, size * (segments - 1), size):

        def run(x: Any, part: Any = layers[start : start + size]) -> Any:
            for layer in part:
                x = layer(x)
            return x

        input = checkpoint(run, input, use_reentrant=use_reentrant, **kwargs)
    for layer in layers[size * (segments - 1) :]:
        input = layer(input)
    return input


def __dir__() -> list[str]:
    return __all__


# ---- what checkpoints of other people import ----


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the inputs, tensors as leaves that require gradients as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: inputs is a {class_name(inputs)}: must be a tuple")
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no input requires gradients."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("no input of a checkpoint requires gradients", stacklevel=2)


def noop_context_fn() -> tuple[Any, Any]:
    """Returns two contexts that do nothing, for the call and for its recomputation."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Sets for the checkpoints that are called in the block whether the second call ends as soon as
    it has computed all that backward needs."""
    early_stops.append(bool(enable))
    try:
        yield
    finally:
        early_stops.pop()


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Does nothing: errors of checkpoints name the tensors that differ."""
    yield
