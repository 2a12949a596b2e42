"""Functions with a gradient defined in Python, as torch.autograd.Function."""
from __future__ import annotations

from ctypes import byref, c_int64, c_void_p
from functools import partial
from typing import Any, Callable, NamedTuple, TypeVar

from .. import _ops, errors
from .._callbacks import tt_function_def
from .._convert import length, pointers
from .._handles import is_grad_enabled, switch_grad
from .._class_name import class_name
from .._lib import call
from .._tensor import Tensor, from_address, tensor_result
from .._tree import broadcast, with_tensors, without_tensors
from .._depth import depth
from ._nodes import function_names
from .grad_mode import no_grad

F = TypeVar("F", bound=Callable[..., Any])


class FunctionCtx:
    """The first argument of forward and backward. backward reads the attributes that forward sets.

    needs_input_grad: a bool for each argument of apply: whether it requires a gradient.
    """

    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True
    _saved: Any = ()  # tensors; their numbers in C once apply has handed them over
    _saved_for_forward: tuple[Tensor | None, ...] = ()  # until apply returns
    _node: Any = None  # C's node while backward runs
    _non_differentiable: tuple[Tensor, ...] = ()
    _dirty: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves inputs or results for backward, where saved_tensors returns them."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward: argument {i} is {class_name(t)}: must be a Tensor or "
                    "None; keep other values as attributes of ctx"
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Saves inputs or results for jvp, where saved_tensors returns them."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_forward: argument {i} is {class_name(t)}: must be a Tensor or None"
                )
        self._saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of save_for_backward; in jvp those of save_for_forward.

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
            results = gradient_of(self.cls)(self.ctx, *given)
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


class DualCall(Call):
    """A call of a Function with a jvp, inside transforms."""

    def jvp(self, _f: int, tangents: tuple[Tensor | None, ...]) -> list[Tensor | None]:
        remaining = iter(tangents)
        given = [next(remaining) if is_tensor else None for is_tensor in self.is_tensor]
        saved, self.ctx._saved = self.ctx._saved, self.ctx._saved_for_forward
        try:
            results = self.cls.jvp(self.ctx, *given)
        finally:
            self.ctx._saved = saved
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != len(self.zeros):
            raise RuntimeError(
                f"{self.cls.__name__}.jvp returned {len(results)} tangents: must return "
                f"{len(self.zeros)}, one for each result of forward"
            )
        return [r for r, zeros in zip(results, self.zeros) if zeros]


class Samples:
    """Reads the samples of the arguments of a Function with a vmap, for apply."""

    size = 0  # the number of samples; 0: no argument is batched
    samples: tuple[Tensor | None, ...] = ()

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors

    def forward(self, _f: int, inputs: Any) -> Any:
        return [_ops.zeros(())]

    def backward(self, _f: int, grads: Any) -> Any:
        return grads

    def vmap(self, _f: int, size: int, samples: Any, _shared: Any) -> Any:
        self.size, self.samples = size, samples
        return [next(t for t in samples if t is not None)]


class Batch(Samples):
    """Makes tensors of all samples batched ones."""

    def vmap(self, _f: int, size: int, samples: Any, _shared: Any) -> Any:
        return self.tensors


def apply_table(callbacks: Any, name: str, given: list[Tensor], n: int) -> list[Tensor]:
    """Calls tt_function_apply. Returns its n results."""
    function_names.add(name)
    handles: Any = (c_void_p * n)()
    call(
        "tt_function_apply",
        byref(tt_function_def(callbacks, name=name.encode())),
        pointers(given),
        length(given),
        handles,
        c_int64(n),
    )
    return [from_address(h) for h in handles]


class VmapInfo(NamedTuple):
    """The first argument of Function.vmap."""

    batch_size: int
    randomness: str


def gradient_of(cls: type[Function]) -> Callable[..., Any]:
    """Returns the backward of a Function, which may be called vjp."""
    return cls.backward if cls.vjp is Function.vjp else cls.vjp


def zeros_like(t: Tensor) -> Callable[[], Tensor]:
    """Returns a function that creates zeros like t. It does not keep t alive."""
    return partial(_ops.zeros, t.shape, dtype=t.dtype, device=t.device)


def requires_grad(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def alias_of_input(o: Any, args: tuple[Any, ...], dirty: tuple[Tensor, ...]) -> Any:
    """Returns a result that is not recorded. As in PyTorch, an input that forward returns, but has
    not marked dirty, becomes a new tensor in the same memory."""
    if not isinstance(o, Tensor):
        return o
    is_input = any(o is a for a in args) and not any(o is t for t in dirty)
    return o.detach() if is_input else o


def may_need_grad(t: Tensor) -> bool:
    """Whether t requires a gradient or, in a function of a transform, may have a tangent."""
    inside = depth.functions > 0 or depth.duals > 0
    return t.requires_grad or (inside and (t.is_floating_point() or t.is_complex()))


class Function:
    """Base class of functions with a custom gradient.

    A subclass defines static methods: forward(ctx, *args) and backward(ctx, *grads); or
    forward(*args), setup_context(ctx, inputs, output) and backward. Call it with apply(*args).
    jvp and vmap are optional: tangents follow from backward, and inside vmap forward and backward
    run on the shapes of one sample, whatever generate_vmap_rule says.
    """

    generate_vmap_rule = False

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

    @staticmethod
    def vjp(*args: Any, **kwargs: Any) -> Any:
        """Another name for backward."""
        raise NotImplementedError("a Function must define backward to be differentiated")

    @staticmethod
    def jvp(*args: Any, **kwargs: Any) -> Any:
        """jvp(ctx, *tangents) returns the tangent of each result. A tangent is None if it is 0, or
        the argument is no tensor. It is called right after forward."""
        raise NotImplementedError

    @staticmethod
    def vmap(*args: Any, **kwargs: Any) -> Any:
        """vmap(info, in_dims, *args) returns (the results for all samples, their dimensions of
        samples). in_dims: that of each argument; None if it has none. info has batch_size and
        randomness. Its operators are recorded."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls forward with args, and records the call if a tensor among them requires a
        gradient."""
        if depth.vmap and cls.vmap is not Function.vmap:
            samples = cls._samples(args)
            if samples.size:
                return cls._of_samples(samples, args)
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
        may_be_dual = depth.functions > 0 or depth.duals > 0
        recorded = recorded or (may_be_dual and cls.jvp is not Function.jvp)
        # operators in place have changed the tangents of dirty inputs, too
        needed = ctx.needs_input_grad if not ctx._dirty else map(requires_grad, args)
        if not (recorded and any(needed) and has_tensors):
            outs = tuple(alias_of_input(o, args, ctx._dirty) for o in outs)
            return outs if isinstance(output, tuple) else outs[0]
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
        kind = Call if cls.jvp is Function.jvp else DualCall
        callbacks = kind(cls, ctx, args, values)
        tensors = iter(apply_table(callbacks, cls.__name__, given, n))
        ctx._saved_for_forward = ()
        results = []
        for o, has_no_grad, is_dirty in zip(outs, non_differentiable, dirty):
            recorded = next(tensors) if isinstance(o, Tensor) else o
            if has_no_grad:
                recorded = recorded.detach()
            results.append(o._become(recorded) if is_dirty else recorded)
        return tuple(results)

    @classmethod
    def _samples(cls, args: tuple[Any, ...]) -> Samples:
        """Returns the samples of the arguments in the innermost vmap that has some."""
        if cls.generate_vmap_rule:
            raise RuntimeError(
                f"{cls.__name__} has generate_vmap_rule=True and a vmap staticmethod: "
                "must have one of them"
            )
        given = [a for a in args if isinstance(a, Tensor)]
        samples = Samples(given)
        if given:
            apply_table(samples, cls.__name__, given, 1)
        return samples

    @classmethod
    def _of_samples(cls, given: Samples, args: tuple[Any, ...]) -> Any:
        """Calls vmap. Returns its results as batched tensors."""
        remaining = iter(given.samples)
        pairs = [(a, next(remaining) if isinstance(a, Tensor) else None) for a in args]
        in_dims = tuple(None if all_of is None else 0 for _, all_of in pairs)
        whole = [a if all_of is None else all_of for a, all_of in pairs]
        found = cls.vmap(VmapInfo(given.size, depth.randomness), in_dims, *whole)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError(
                f"{cls.__name__}.vmap returned {class_name(found)}: must return two values, the "
                "results and the dimensions of their samples"
            )
        output, out_dims = found
        tensors: list[Tensor] = []
        structure = without_tensors(output, tensors)
        dims = broadcast(out_dims, output, f"{cls.__name__}.vmap: out_dims")
        fronted = [
            t.expand(given.size, *t.shape) if d is None else t.movedim(d, 0)
            for t, d in zip(tensors, dims)
        ]
        n = len(fronted)
        results = apply_table(Batch(fronted), cls.__name__, given.tensors, n) if n else []
        return with_tensors(structure, results)


class InplaceFunction(Function):
    """A Function with an argument of the constructor that older programs pass on.

    apply creates no object, so inplace has no effect: forward calls mark_dirty.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


def once_differentiable(backward: F) -> F:
    """Decorates a backward that is not recorded, so that its results have no history."""
    return no_grad(backward)
