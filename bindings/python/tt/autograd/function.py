"""Functions of Python with a gradient of their own, as torch.autograd.Function."""
from ctypes import byref, c_int64, c_void_p
from functools import partial

from .. import _ops, errors
from .._callbacks import tt_function_def
from .._convert import length, pointers
from .._lib import call, result
from .._tensor import Tensor, wrap
from . import is_grad_enabled, no_grad, switch_grad


class Context:
    """The first argument of forward and backward; keeps what is assigned to it."""

    needs_input_grad, materialize_grads = (), True
    _saved, _node, _plain, _dirty = (
        (),
        None,
        (),
        (),
    )  # saved: tensors until apply has given them to C, then their numbers there

    def save_for_backward(self, *tensors):
        """Keeps inputs or results for backward, where saved_tensors gives them back."""
        self._saved = tensors

    @property
    def saved_tensors(self):
        if self._node is None:
            return self._saved
        return tuple(
            result(Tensor, "tt_function_saved", self._node, c_int64(i)) for i in self._saved
        )

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
        self.zeros = [
            partial(_ops.zeros, o.shape, dtype=o.dtype, device=o.device)
            if isinstance(o, Tensor)
            else None
            for o in outs
        ]

    def forward(self, f, _inputs):
        saved, outs, self.outs = self.ctx._saved, self.outs, None
        call("tt_function_save", c_void_p(f), pointers(saved), length(saved))
        self.ctx._saved = range(len(saved))
        return [o for o in outs if isinstance(o, Tensor)]

    def backward(self, f, grads):
        grads = iter(grads)
        given = [next(grads) if zeros else None for zeros in self.zeros]
        if self.ctx.materialize_grads:
            given = [zeros() if zeros and g is None else g for g, zeros in zip(given, self.zeros)]
        self.ctx._node = c_void_p(f)
        try:
            found = self.cls.backward(self.ctx, *given)
        finally:
            self.ctx._node = None
        found = found if isinstance(found, tuple) else (found,)
        name, n = self.cls.__name__ + "Backward", len(self.takes)
        if len(found) < n or any(g is not None for g in found[n:]):
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {n}, got {len(found)})"
            )
        if any(g is not None and not takes for g, takes in zip(found, self.takes)):
            raise RuntimeError(
                f"function {name} returned a gradient for an argument that is no Tensor"
            )
        return [g for g, takes in zip(found, self.takes) if takes]


class Function:
    """Base class: static methods forward(ctx, …) and backward(ctx, *grads); or forward(…) and setup_context(ctx, inputs, output). apply calls it."""

    def __init__(self):
        raise TypeError(
            f"{type(self).__name__}: call {type(self).__name__}.apply(…), with static methods forward and backward"
        )

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
        try:
            switch_grad(False)
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        finally:
            try:
                switch_grad(recorded)
            finally:
                switch_grad(
                    recorded
                )  # now at the latest: what a signal's handler raises may have come before it
        outs = output if isinstance(output, tuple) else (output,)
        if not (
            recorded and any(ctx.needs_input_grad) and any(isinstance(o, Tensor) for o in outs)
        ):
            return output
        plain, changed = (
            [any(o is m for m in marked) for o in outs] for marked in (ctx._plain, ctx._dirty)
        )
        ctx._plain = ctx._dirty = ()  # with history, they would keep ctx and themselves alive
        if any(
            dirty and (o._is_view() or o.is_leaf and o.requires_grad)
            for o, dirty in zip(outs, changed)
        ):
            raise errors.AutogradError(
                "mark_dirty(): a leaf that requires a gradient, or a view, cannot be changed in place by a Function"
            )
        given, n = [a for a in args if isinstance(a, Tensor)], sum(
            isinstance(o, Tensor) for o in outs
        )
        results = Call(
            cls, ctx, args, tuple(o.detach() if dirty else o for o, dirty in zip(outs, changed))
        )
        made = (c_void_p * n)()
        call(
            "tt_function_apply",
            byref(tt_function_def(results, name=cls.__name__.encode())),
            pointers(given),
            length(given),
            made,
            c_int64(n),
        )
        made = map(wrap, made)
        found = tuple(next(made) if isinstance(o, Tensor) else o for o in outs)
        found = tuple(t.detach() if no else t for t, no in zip(found, plain))
        found = tuple(o._become(t) if dirty else t for o, t, dirty in zip(outs, found, changed))
        return found if isinstance(output, tuple) else found[0]


def once_differentiable(backward):
    """For a backward that computes without recording: its results have no gradients."""
    return no_grad(backward)
