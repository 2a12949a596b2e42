"""Functions with a gradient defined in Python, as torch.autograd.Function."""
from __future__ import annotations

from ctypes import byref, c_int64, c_void_p
from functools import partial

from .. import _ops, errors
from .._callbacks import tt_function_def
from .._convert import length, pointers
from .._handles import is_grad_enabled, switch_grad
from .._kinds import kind_name
from .._lib import call
from .._tensor import Tensor, from_address, tensor_result
from ._depth import depth
from .grad_mode import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])


class FunctionCtx:
    """The first argument of forward and backward. backward reads the attributes that forward sets.

    needs_input_grad: a bool for each argument of apply: whether it requires a gradient.
    """

    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True
    _saved: Any = ()  # tensors; their numbers in C once apply has handed them over
    _node: Any = None  # C's node while backward runs
    _non_differentiable: tuple[Tensor, ...] = ()
    _dirty: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves inputs or results for backward, where saved_tensors returns them."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward: argument {i} is {kind_name(t)}: must be a Tensor or None; "
                    "keep other values as attributes of ctx"
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Accepts tensors for PyTorch's jvp, which tt does not call: it differentiates backward."""

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of save_for_backward.

        Raises AutogradError if one was changed in place, or the graph has been released.
        """
        if self._node is None:
            return self._saved
        return tuple(
            tensor_result("tt_function_saved", self._node, c_int64(i)) for i in self._saved
        )

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declares results that have no gradient."""
        self._non_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declares inputs that forward changes in place. forward must return them."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """False: backward receives None, not zeros, for a result without a gradient."""
        self.materialize_grads = bool(value)


class Call:
    """One application of a Function, with the methods that C calls."""

    def __init__(
        self, cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], outs: tuple[Any, ...]
    ) -> None:
        self.cls, self.ctx = cls, ctx
        self.outs: Any = outs
        self.is_tensor = [isinstance(a, Tensor) for a in args]
        self.zeros = [zeros_like(o) if isinstance(o, Tensor) else None for o in outs]

    def forward(self, f: int, _inputs: Any) -> list[Tensor]:
        """Passes the results and the saved tensors to C."""
        saved, outs, self.outs = self.ctx._saved, self.outs, None
        call("tt_function_save", c_void_p(f), pointers(saved), length(saved))
        self.ctx._saved = range(len(saved))
        return [o for o in outs if isinstance(o, Tensor)]

    def backward(self, f: int, grads: tuple[Tensor | None, ...]) -> list[Tensor | None]:
        remaining = iter(grads)
        given = [next(remaining) if zeros else None for zeros in self.zeros]
        if self.ctx.materialize_grads:
            given = [zeros() if zeros and g is None else g for g, zeros in zip(given, self.zeros)]
        self.ctx._node = c_void_p(f)
        try:
            results = self.cls.backward(self.ctx, *given)
        finally:
            self.ctx._node = None
        return self._checked(results if isinstance(results, tuple) else (results,))

    def _checked(self, grads: tuple[Any, ...]) -> list[Tensor | None]:
        """Returns the gradients of the tensors among the arguments."""
        name, n = self.cls.__name__ + "Backward", len(self.is_tensor)
        if len(grads) < n or any(g is not None for g in grads[n:]):
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients "
                f"(expected {n}, got {len(grads)})"
            )
        if any(g is not None and not is_tensor for g, is_tensor in zip(grads, self.is_tensor)):
            raise RuntimeError(
                f"function {name} returned a gradient for an argument that is no Tensor"
            )
        return [g for g, is_tensor in zip(grads, self.is_tensor) if is_tensor]


def zeros_like(t: Tensor) -> Callable[[], Tensor]:
    """Returns a function that creates zeros like t. It does not keep t alive."""
    return partial(_ops.zeros, t.shape, dtype=t.dtype, device=t.device)


def may_need_grad(t: Tensor) -> bool:
    """Whether t requires a gradient or, in a function of a transform, may have a tangent."""
    return t.requires_grad or (depth.functions > 0 and t.is_floating_point())


class Function:
    """Base class of functions with a custom gradient.

    A subclass defines static methods: forward(ctx, *args) and backward(ctx, *grads); or
    forward(*args), setup_context(ctx, inputs, output) and backward. Call it with apply(*args).
    """

    def __init__(self) -> None:
        name = type(self).__name__
        raise TypeError(f"{name}: call {name}.apply(…), with static methods forward and backward")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """forward(ctx, *args) returns the results: a tensor or a tuple. It is not recorded."""
        raise NotImplementedError("a Function must define forward")

    @staticmethod
    def setup_context(*args: Any, **kwargs: Any) -> Any:
        """setup_context(ctx, inputs, output) saves values for backward, if forward takes no ctx."""
        raise NotImplementedError

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """backward(ctx, *grads) returns a gradient, or None, for each argument of apply.

        grads: the gradients of the results.
        """
        raise NotImplementedError("a Function must define backward to be differentiated")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls forward with args, and records the call if a tensor among them requires a
        gradient."""
        ctx = FunctionCtx()
        recorded = is_grad_enabled()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and may_need_grad(a) for a in args)
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
                switch_grad(recorded)  # again: a signal handler may have raised before the first
        outs = output if isinstance(output, tuple) else (output,)
        has_tensors = any(isinstance(o, Tensor) for o in outs)
        if not (recorded and any(ctx.needs_input_grad) and has_tensors):
            return output
        results = cls._recorded(ctx, args, outs)
        return results if isinstance(output, tuple) else results[0]

    @classmethod
    def _recorded(
        cls, ctx: FunctionCtx, args: tuple[Any, ...], outs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Records a call. Returns its results with the recorded operator as history."""
        non_differentiable = [any(o is t for t in ctx._non_differentiable) for o in outs]
        dirty = [any(o is t for t in ctx._dirty) for o in outs]
        ctx._non_differentiable = ctx._dirty = ()  # results with a history would keep ctx alive
        for o, is_dirty in zip(outs, dirty):
            if is_dirty and (o._is_view() or o.is_leaf and o.requires_grad):
                raise errors.AutogradError(
                    "mark_dirty(): a leaf that requires a gradient, or a view, cannot be changed "
                    "in place by a Function"
                )
        given = [a for a in args if isinstance(a, Tensor)]
        n = sum(isinstance(o, Tensor) for o in outs)
        values = tuple(o.detach() if is_dirty else o for o, is_dirty in zip(outs, dirty))
        callbacks = Call(cls, ctx, args, values)
        handles: Any = (c_void_p * n)()
        call(
            "tt_function_apply",
            byref(tt_function_def(callbacks, name=cls.__name__.encode())),
            pointers(given),
            length(given),
            handles,
            c_int64(n),
        )
        tensors = map(from_address, handles)
        results = []
        for o, has_no_grad, is_dirty in zip(outs, non_differentiable, dirty):
            recorded = next(tensors) if isinstance(o, Tensor) else o
            if has_no_grad:
                recorded = recorded.detach()
            results.append(o._become(recorded) if is_dirty else recorded)
        return tuple(results)


def once_differentiable(backward: F) -> F:
    """Decorates a backward that is not recorded, so that its results have no history."""
    return no_grad(backward)
