"""Activation checkpointing: results inside a function are computed again in backward, not kept.

It is PyTorch's reentrant kind: backward() adds the gradients of parameters that the function uses;
autograd.grad returns those of its arguments only, and create_graph is refused.
"""
from __future__ import annotations

from contextlib import nullcontext

from .. import _ops as ops
from .._tensor import Tensor
from ..autograd import Function, backward, enable_grad, is_grad_enabled
from ..errors import AutogradError
from ..random import get_rng_state, set_rng_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]


class CheckpointError(RuntimeError):
    """The function has returned something else when it was computed again."""


def no_contexts() -> tuple[Any, Any]:
    """Returns two context managers that do nothing."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = no_contexts,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Returns function(*args, **kwargs) without keeping what its backward needs.

    Backward calls the function again with the same arguments, and with the same random numbers if
    preserve_rng_state. Arguments and results may hold tensors in lists, tuples and dicts.
    context_fn: returns two context managers: around the first call and around the second one.
    determinism_check: "default": raises CheckpointError if the second results have other shapes or
        dtypes; "none": does not look.
    use_reentrant, debug and early_stop are ignored.
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint: determinism_check is {determinism_check!r}: must be 'default' or 'none'"
        )
    if not is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn()
    tensors: list[Tensor] = []
    call = Recomputed()
    call.function, call.arguments = function, without_tensors((args, kwargs), tensors)
    call.rng = get_rng_state() if preserve_rng_state else None
    call.context, call.checked = second, determinism_check == "default"
    # the graph needs an input with a gradient: parameters that the function uses are not seen
    watched = ops.empty((0,)).requires_grad_()
    with first:
        results = Checkpoint.apply(call, watched, *tensors)
    return with_tensors(call.results, list(results))


class Recomputed:
    """What backward needs to call a function again."""

    function: Callable[..., Any]
    arguments: Any
    results: Any
    rng: Tensor | None
    context: Any
    checked: bool

    def __call__(self, tensors: list[Tensor], found: list[Tensor]) -> Any:
        """Calls the function with tensors. Adds those of its results to found. Returns the
        structure of the results."""
        args, kwargs = with_tensors(self.arguments, tensors)
        return without_tensors(self.function(*args, **kwargs), found)


class Place:
    """Where a tensor is taken out of a structure. index: its number."""

    def __init__(self, index: int) -> None:
        self.index = index


def mapped(structure: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a structure of lists, tuples and dicts with changed leaves."""
    if isinstance(structure, tuple):
        items = [mapped(x, change) for x in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    if type(structure) is list:
        return [mapped(x, change) for x in structure]
    if type(structure) is dict:
        return {key: mapped(x, change) for key, x in structure.items()}
    return change(structure)


def without_tensors(structure: Any, tensors: list[Tensor]) -> Any:
    """Returns the structure with places instead of tensors, which are added to tensors."""

    def change(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        tensors.append(x)
        return Place(len(tensors) - 1)

    return mapped(structure, change)


def with_tensors(structure: Any, tensors: list[Tensor]) -> Any:
    """Returns the structure with its tensors instead of places."""
    return mapped(structure, lambda x: tensors[x.index] if isinstance(x, Place) else x)


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
        before = get_rng_state()
        try:
            if call.rng is not None:
                set_rng_state(call.rng)
            with enable_grad(), call.context:
                call(leaves, results)
        finally:
            if call.rng is not None:
                set_rng_state(before)
        found = [(tuple(r.shape), r.dtype) for r in results]
        if call.checked and found != ctx.shapes:
            raise CheckpointError(
                f"checkpoint: the function returned {ctx.shapes}, and {found} when it was "
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
    """Calls functions, or the layers of a Sequential, one after the other, in segments that are
    checkpointed, all but the last one. kwargs: preserve_rng_state."""
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
