"""Full backward hooks of modules, as PyTorch's: inputs and results pass a function that changes nothing, whose backward runs the hooks."""
from .. import _ops
from .._tensor import Tensor
from ..autograd import is_grad_enabled
from ..autograd.function import Function


class Pass(Function):
    """run(grads) gives the gradients that go on."""

    @staticmethod
    def forward(ctx, run, *tensors):
        ctx.run = run
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.run(grads))


def replaced(grads, found, what):
    if found is None:
        return grads
    found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if len(found) != len(grads):
        raise RuntimeError(
            f"Backward {what} returned {len(found)} gradients: expected {len(grads)}"
        )
    return found


class Watch:
    """One call of a module with the hooks that it has then."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, list(hooks), list(pre_hooks)
        self.facts, self.inputs_recorded, self.grad_output = [], False, None

    def inputs(self, args):
        self.facts = [(a.shape, a.dtype, a.device) if isinstance(a, Tensor) else None for a in args]
        args, self.inputs_recorded = self._passed(args, self._on_inputs)
        return args

    def results(self, result):
        if isinstance(result, Tensor):
            return self._passed((result,), self._on_results)[0][0]
        return self._passed(result, self._on_results)[0] if isinstance(result, tuple) else result

    @staticmethod
    def _passed(values, on_grads):
        """(values with what needs a gradient behind a Pass, whether there was any)"""
        places = (
            [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
            if is_grad_enabled()
            else []
        )
        if not places:
            return values, False

        def run(grads):
            full = [None] * len(values)
            for i, g in zip(places, grads):
                full[i] = g
            full = on_grads(tuple(full))
            return [full[i] for i in places]

        passed = list(values)
        for i, t in zip(places, Pass.apply(run, *(values[i] for i in places))):
            passed[i] = t
        return tuple(passed), True

    def _on_results(self, grads):
        for hook in self.pre_hooks:
            grads = replaced(grads, hook(self.module, grads), "pre hook")
        self.grad_output = grads
        if not self.inputs_recorded and any(
            g is not None for g in self._on_inputs((None,) * len(self.facts))
        ):
            raise RuntimeError(
                "Backward hook of a module none of whose inputs requires a gradient returned one: it must return None"
            )
        return grads

    def _on_inputs(self, grads):
        grad_output, self.grad_output = self.grad_output, None
        if grad_output is None:  # this backward did not come through the module
            return grads
        if self.inputs_recorded:
            grads = tuple(
                _ops.zeros(f[0], dtype=f[1], device=f[2]) if f and g is None else g
                for f, g in zip(self.facts, grads)
            )
        for hook in self.hooks:
            grads = replaced(grads, hook(self.module, grads, grad_output), "hook")
        return grads
