"""Checkpoints that store the results of some operators instead of computing them again."""
from __future__ import annotations

import enum
from contextlib import contextmanager
from threading import local as thread_local
from typing import Any, Callable, Iterator

from .. import ops
from ..overrides import TorchFunctionMode
from .._tensor import Tensor


class CheckpointPolicy(enum.Enum):
    """The decision of a policy for an operator. PREFER_ is the same as MUST_ in tt, and CPU_OFFLOAD
    the same as SAVE: results stay on their device."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


SAVES = (
    CheckpointPolicy.MUST_SAVE,
    CheckpointPolicy.PREFER_SAVE,
    CheckpointPolicy.MUST_CPU_OFFLOAD,
    CheckpointPolicy.PREFER_CPU_OFFLOAD,
)


class SelectiveCheckpointContext:
    """The call that a policy decides about. is_recompute: it is the one in backward."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


class Active(thread_local):
    """running: the stored call whose function runs. keep: takes a tensor that the second call
    saves, as Frame.compute() does."""

    running: StoredCall | None = None
    keep: Callable[[Tensor], Tensor] | None = None


active = Active()


@contextmanager
def running(call: StoredCall) -> Iterator[None]:
    before, active.running = active.running, call
    try:
        yield
    finally:
        active.running = before


@contextmanager
def keeping(keep: Callable[[Tensor], Tensor]) -> Iterator[None]:
    before, active.keep = active.keep, keep
    try:
        yield
    finally:
        active.keep = before


def place(t: Tensor) -> tuple[Any, ...]:
    """Identifies the elements of a tensor."""
    return t.data_ptr(), tuple(t.shape), t.stride(), t.dtype


class StoredCall:
    """A call whose result is stored, with what its operators saved for backward: the number of an
    argument, or the tensor itself."""

    def __init__(self, arguments: list[Tensor]) -> None:
        self.places = [place(t) for t in arguments]
        self.saved: list[int | Tensor] = []
        self.result: Any = None
        self.versions: list[int] = []

    def note(self, t: Tensor) -> None:
        """Notes a tensor that an operator saves."""
        found = place(t)
        is_argument = found in self.places
        self.saved.append(self.places.index(found) if is_argument else t.detach())

    def finish(self, result: Any) -> None:
        self.result = result
        self.versions = [t._version for t in tensors_of(result)]

    def replay(self, arguments: list[Tensor]) -> Any:
        """Returns the stored result, and saves what the operators saved for the arguments of the
        second call."""
        for one in self.saved:
            if active.keep is not None:
                active.keep(arguments[one] if isinstance(one, int) else one)
        return stored(self.result)


def tensors_of(x: Any) -> list[Tensor]:
    if isinstance(x, Tensor):
        return [x]
    return [t for item in x for t in tensors_of(item)] if isinstance(x, (tuple, list)) else []


def stored(x: Any) -> Any:
    """Returns a result as leaves that require gradients as it did."""
    if isinstance(x, Tensor):
        return x.detach().requires_grad_(x.requires_grad)
    if isinstance(x, (tuple, list)):
        items = [stored(item) for item in x]
        return getattr(type(x), "_make", type(x))(items)
    return x


def operator_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the operator of aten that PyTorch would run for a function; the function if tt knows
    none."""
    name = getattr(func, "__name__", "").strip("_")
    dims = [t.ndim for t in args if isinstance(t, Tensor)]
    if name == "linear":
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        name = "mm" if bias is None else "addmm"
    elif name == "matmul":
        name = "mm" if max(dims, default=0) <= 2 else "bmm"
    packet = getattr(ops.aten, name, None)
    return getattr(packet, "default", func) if packet is not None else func


class Selecting(TorchFunctionMode):
    """One of the two calls of a checkpoint."""

    def __init__(self, policy: Any, calls: list[StoredCall], again: bool, mutable: bool) -> None:
        super().__init__()
        self.policy, self.calls, self.again, self.mutable = policy, calls, again, mutable
        self.place = 0

    def __enter__(self) -> Selecting:
        self.place = 0
        return super().__enter__()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        context = SelectiveCheckpointContext(is_recompute=self.again)
        decision = self.policy(context, operator_of(func, args, kwargs), *args, **kwargs)
        if decision not in SAVES:
            return func(*args, **kwargs)
        arguments = tensors_of((args, tuple(kwargs.values())))
        if not self.again:
            call = StoredCall(arguments)
            self.calls.append(call)
            with running(call):
                result = func(*args, **kwargs)
            call.finish(result if result is not None else ())
            return result
        if self.place == len(self.calls):
            raise RuntimeError(
                f"checkpoint: the policy stores {func.__name__} in the second call only"
            )
        call = self.calls[self.place]
        self.place += 1
        now = [t._version for t in tensors_of(call.result)]
        if not self.mutable and now != call.versions:
            raise RuntimeError(
                "checkpoint: a tensor that selective checkpointing stored was written to: give "
                "allow_cache_entry_mutation=True if that is intended"
            )
        return call.replay(arguments)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Selecting, Selecting]:
    """Returns two contexts for checkpoint(…, use_reentrant=False, context_fn=…), by which results
    of some operators are stored.

    policy_fn_or_list: a function that gets (context, operator, *args, **kwargs) and returns a
        CheckpointPolicy; or a list of the operators to store, such as tt.ops.aten.mm.default
    allow_cache_entry_mutation: stored results may be written to
    """
    policy = policy_fn_or_list
    if isinstance(policy, (list, tuple)):
        wanted = list(policy)

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            saves = any(op is one or op == one for one in wanted)
            return CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE

    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    calls: list[StoredCall] = []
    mutable = allow_cache_entry_mutation
    return Selecting(policy, calls, False, mutable), Selecting(policy, calls, True, mutable)
