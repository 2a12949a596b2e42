"""Full backward hooks of modules, as PyTorch's.

The inputs and the results of a module pass through an identity function whose backward calls the
hooks.
"""
from __future__ import annotations

from typing import Any, Callable, Iterable

from .. import _ops
from .._positions import note_read
from .._tensor import Tensor
from ..autograd import is_grad_enabled
from ..autograd.function import Function

Grads = tuple[Any, ...]


class Pass(Function):
    """The identity. backward returns run(grads), a list of gradients."""

    @staticmethod
    def forward(ctx, run, *tensors):
        ctx.run = run
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.run(grads))


def replaced(grads: Grads, result: Any, what: str) -> Grads:
    """Returns a hook's result as replacement for grads; grads if it is None."""
    if result is None:
        return grads
    result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(result) != len(grads):
        raise RuntimeError(
            f"Backward {what} returned {len(result)} gradients: expected {len(grads)}"
        )
    return result


class Watch:
    """One call of a module, with its backward hooks at the time of the call."""

    def __init__(self, module: Any, hooks: Iterable[Any], pre_hooks: Iterable[Any]) -> None:
        self.module, self.hooks, self.pre_hooks = module, list(hooks), list(pre_hooks)
        self.input_facts: list[Any] = []  # (shape, dtype, device) of tensors, None for others
        self.inputs_recorded = False  # does an input require a gradient?
        self.grad_output: Grads | None = None

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the arguments for forward."""
        for a in args:
            facts = (a.shape, a.dtype, a.device) if isinstance(a, Tensor) else None
            self.input_facts.append(facts)
        args, self.inputs_recorded = self._passed(args, self._on_inputs)
        return args

    def results(self, result: Any) -> Any:
        """Returns forward's result for the caller."""
        if isinstance(result, Tensor):
            return self._passed((result,), self._on_results)[0][0]
        if isinstance(result, tuple):
            return self._passed(result, self._on_results)[0]
        return result

    @staticmethod
    def _passed(
        values: tuple[Any, ...], on_grads: Callable[[Grads], Grads]
    ) -> tuple[tuple[Any, ...], bool]:
        """Passes tensors that require gradients through Pass. Returns (values, whether there are
        any)."""
        places = []
        if is_grad_enabled():
            places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
        if not places:
            return values, False
        note_read()  # a replay would not call the hooks

        def run(grads: Grads) -> list[Any]:
            full = [None] * len(values)
            for i, g in zip(places, grads):
                full[i] = g
            changed = on_grads(tuple(full))
            return [changed[i] for i in places]

        passed = list(values)
        for i, t in zip(places, Pass.apply(run, *(values[i] for i in places))):
            passed[i] = t
        return tuple(passed), True

    def _on_results(self, grads: Grads) -> Grads:
        for hook in self.pre_hooks:
            grads = replaced(grads, hook(self.module, grads), "pre hook")
        self.grad_output = grads
        if not self.inputs_recorded:
            no_grads = (None,) * len(self.input_facts)
            if any(g is not None for g in self._on_inputs(no_grads)):
                raise RuntimeError(
                    "Backward hook of a module none of whose inputs requires a gradient "
                    "returned one: it must return None"
                )
        return grads

    def _on_inputs(self, grads: Grads) -> Grads:
        grad_output, self.grad_output = self.grad_output, None
        if grad_output is None:  # this backward did not pass through the module's results
            return grads
        if self.inputs_recorded:
            grads = tuple(map(self._materialized, grads, self.input_facts))
        for hook in self.hooks:
            grads = replaced(grads, hook(self.module, grads, grad_output), "hook")
        return grads

    @staticmethod
    def _materialized(grad: Any, facts: Any) -> Any:
        """Returns zeros for a tensor without a gradient."""
        if grad is not None or facts is None:
            return grad
        shape, dtype, device = facts
        return _ops.zeros(shape, dtype=dtype, device=device)
