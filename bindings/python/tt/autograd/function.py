"""Functions of Python with a gradient of their own, as torch.autograd.Function."""
import itertools
from ctypes import byref, c_int64, c_void_p
from functools import wraps

from .. import _ops, errors
from .._convert import length, pointers
from .._hooks import definition
from .._lib import call, result
from .._tensor import Tensor, wrap
from . import is_grad_enabled, no_grad


class Context:
    """The first argument of forward and backward; keeps what is assigned to it."""
    needs_input_grad, materialize_grads = (), True
    _saved, _node, _plain, _dirty = (), None, (), ()  # saved: tensors until apply has given them to C, then whether each was one

    def save_for_backward(self, *tensors):
        """Keeps inputs or results for backward, where saved_tensors gives them back."""
        self._saved = tensors

    @property
    def saved_tensors(self):
        if self._node is None:
            return tuple(self._saved)
        numbers = itertools.count()
        return tuple(result(Tensor, "tt_function_saved", self._node, c_int64(next(numbers))) if there else None for there in self._saved)

    def mark_non_differentiable(self, *tensors):
        """These results have no gradient."""
        self._plain = tensors

    def mark_dirty(self, *tensors):
        """These inputs are changed in place, and returned: they become the results."""
        self._dirty = tensors

    def set_materialize_grads(self, value):
        """False: backward gets None, not zeros, where a result has no gradient."""
        self.materialize_grads = bool(value)


class Call:
    """One application: what C's callbacks need."""

    def __init__(self, cls, ctx, args, outs):
        self.cls, self.ctx, self.outs = cls, ctx, outs
        self.takes = [isinstance(a, Tensor) for a in args]
        self.shapes = [(o.shape, o.dtype, o.device) if isinstance(o, Tensor) else None for o in outs]

    def forward(self, f, _inputs):
        saved = [t for t in self.ctx._saved if t is not None]
        call("tt_function_save", c_void_p(f), pointers(saved), length(saved))
        self.ctx._saved, outs, self.outs = [t is not None for t in self.ctx._saved], self.outs, None
        return [o for o in outs if isinstance(o, Tensor)]

    def backward(self, f, grads):
        grads, given = iter(grads), []
        for facts in self.shapes:
            g = next(grads) if facts else None
            zeros = facts and g is None and self.ctx.materialize_grads
            given.append(_ops.zeros(facts[0], dtype=facts[1], device=facts[2]) if zeros else g)
        self.ctx._node = c_void_p(f)
        try:
            found = self.cls.backward(self.ctx, *given)
        finally:
            self.ctx._node = None
        found = found if isinstance(found, tuple) else (found,)
        name, n = self.cls.__name__ + "Backward", len(self.takes)
        if len(found) < n or any(g is not None for g in found[n:]):
            raise RuntimeError(f"function {name} returned an incorrect number of gradients (expected {n}, got {len(found)})")
        if any(g is not None and not takes for g, takes in zip(found, self.takes)):
            raise RuntimeError(f"function {name} returned a gradient for an argument that is no Tensor")
        return [g for g, takes in zip(found, self.takes) if takes]


class Function:
    """Base class: static methods forward(ctx, …) and backward(ctx, *grads); or forward(…) and setup_context(ctx, inputs, output). apply calls it."""

    def __init__(self):
        raise TypeError(f"{type(self).__name__}: call {type(self).__name__}.apply(…), with static methods forward and backward")

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("a Function must define forward")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("a Function must define backward to be differentiated")

    @classmethod
    def apply(cls, *args):
        ctx = Context()
        recorded = is_grad_enabled()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        outs = output if isinstance(output, tuple) else (output,)
        if not (recorded and any(ctx.needs_input_grad) and any(isinstance(o, Tensor) for o in outs)):
            return output
        plain, ctx._plain = [any(o is p for p in ctx._plain) for o in outs], ()  # with history, they would keep ctx and themselves alive
        changed, ctx._dirty = [any(o is d for d in ctx._dirty) for o in outs], ()
        for o in (o for o, dirty in zip(outs, changed) if dirty):
            if o._is_view() or o.is_leaf and o.requires_grad:
                raise errors.AutogradError("mark_dirty(): a leaf that requires a gradient, or a view, cannot be changed in place by a Function")
        made = iter(cls._recorded(ctx, args, tuple(o.detach() if dirty else o for o, dirty in zip(outs, changed))))
        found = tuple(next(made) if isinstance(o, Tensor) else o for o in outs)
        found = tuple(t.detach() if no else t for t, no in zip(found, plain))
        found = tuple(o._become(t) if dirty else t for o, t, dirty in zip(outs, found, changed))
        return found if isinstance(output, tuple) else found[0]

    @classmethod
    def _recorded(cls, ctx, args, outs):
        """The tensors of outs with the history of this call."""
        given, n = [a for a in args if isinstance(a, Tensor)], sum(isinstance(o, Tensor) for o in outs)
        table = definition("tt_function_def", Call(cls, ctx, args, outs), name=cls.__name__.encode())
        found = (c_void_p * n)()
        call("tt_function_apply", byref(table), pointers(given), length(given), found, c_int64(n))
        return [wrap(h) for h in found]


def once_differentiable(backward):
    """For a backward that computes without recording: its results have no gradients."""
    @wraps(backward)
    def inside(ctx, *grads):
        with no_grad():
            return backward(ctx, *grads)
    return inside
