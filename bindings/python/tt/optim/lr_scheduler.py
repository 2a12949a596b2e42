"""Learning-rate schedules, with the API of torch.optim.lr_scheduler.

libtt computes most of them. LRScheduler is the base of those written in Python.
"""
from __future__ import annotations

from bisect import bisect_right
from ctypes import CFUNCTYPE, POINTER, byref, c_double, c_int32, c_int64, c_void_p
from types import FunctionType
from typing import Any, Callable, Iterable, Sequence, Union

from .._hints import Self
from .._hooks import guarded
from .._lib import fail, lib, local
from . import _schedules
from ._schedules import *  # noqa: F403
from .fractional import Fractional
from .native_scheduler import NativeScheduler, SchedulerHandle, native, synchronized
from .optimizer import Optimizer
from .schedules import CosineAnnealingWarmRestarts, CyclicLR, LRScheduler, ReduceLROnPlateau
from .schedules import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .schedules import check_optimizer, kept

Factor = Callable[[int], float]
Factors = Union[Factor, Sequence[Factor]]

__all__ = [
    "ChainedScheduler",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "LRScheduler",
    "LambdaLR",
    "MultiplicativeLR",
    "ReduceLROnPlateau",
    "SequentialLR",
]

# ---- schedules of schedules ----


def checked(
    name: str, schedulers: Iterable[LRScheduler], optimizer: Optimizer | None
) -> tuple[list[Any], Optimizer]:
    """Returns the schedules of a composite, and their optimizer."""
    parts: list[Any] = list(schedulers)
    if not parts:
        raise ValueError(f"{name} needs at least one scheduler")
    common: Any = optimizer or getattr(parts[0], "optimizer", None)
    for i, part in enumerate(parts):
        if not hasattr(part, "optimizer"):
            raise TypeError(
                f"{name}: schedulers[{i}] must be a scheduler, not {type(part).__name__}"
            )
        if isinstance(part, ReduceLROnPlateau):
            raise ValueError(
                f"{name}: schedulers[{i}] is a ReduceLROnPlateau, whose step() needs a metric"
            )
        if part.optimizer is not common:
            raise ValueError(f"{name}: schedulers[{i}] belongs to another optimizer")
    return parts, common


class Composite(NativeScheduler):
    """A schedule of schedules."""

    _schedulers: list[Any]

    def _begin(self, values: dict[str, Any]) -> None:
        parts, optimizer = checked(self._class, values["schedulers"], values.get("optimizer"))
        self.optimizer, self._schedulers = optimizer, parts
        values.update(schedulers=parts, optimizer=optimizer)
        if "milestones" in values:
            values["milestones"] = list(values["milestones"])

    def _initial_step(self) -> None:
        self._step()

    def _undo(self) -> None:
        for part in self._schedulers:
            part._undo()


def are_native(schedulers: Iterable[LRScheduler]) -> bool:
    in_python = (Mixed, Fractional)
    return all(isinstance(s, NativeScheduler) and not isinstance(s, in_python) for s in schedulers)


class SequentialLR(Composite, _schedules.SequentialLR):
    __doc__ = _schedules.SequentialLR.__doc__

    def __new__(
        cls,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> Self:
        return object.__new__(cls if are_native(schedulers) else MixedSequentialLR)


class ChainedScheduler(Composite, _schedules.ChainedScheduler):
    __doc__ = _schedules.ChainedScheduler.__doc__

    def __new__(cls, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> Self:
        return object.__new__(cls if are_native(schedulers) else MixedChainedScheduler)

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        super().__init__(checked(self._class, schedulers, optimizer)[0])


class Mixed(Composite):
    """A schedule of schedules, some of which are written in Python. Python steps them."""

    last_epoch: Any = None  # attributes of the object, instead of properties that ask C
    base_lrs: Any = None
    _step_count: Any = None
    _last_lr: Any = None

    get_last_lr = LRScheduler.get_last_lr

    def __reduce__(self) -> Any:
        return blank, (type(self),), self.__dict__

    def state_dict(self) -> dict[str, Any]:
        hidden = ("optimizer", "_schedulers")
        state = {key: value for key, value in self.__dict__.items() if key not in hidden}
        state["_schedulers"] = [part.state_dict() for part in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        own = {key: value for key, value in state_dict.items() if key != "_schedulers"}
        self.__dict__.update(own)
        for part, state in zip(self._schedulers, state_dict["_schedulers"]):
            part.load_state_dict(state)


def blank(cls: type[Mixed]) -> Mixed:
    """Unpickles a Mixed. Pickle sets its attributes afterwards."""
    return object.__new__(cls)


class MixedSequentialLR(Mixed, SequentialLR):
    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self._schedulers, self.optimizer = checked(self._class, schedulers, optimizer)
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        n = len(self._schedulers)
        if len(self._milestones) != n - 1:
            raise ValueError(
                f"SequentialLR: {n} schedulers need {n - 1} milestones, "
                f"not {len(self._milestones)}"
            )
        for group in optimizer.param_groups:
            group["lr"] = kept(group["initial_lr"])
        self._undo()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: None = None) -> None:  # type: ignore[override]
        """Sets the learning rates; call it after the optimizer's step."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        part = self._schedulers[i]
        if i and self._milestones[i - 1] == self.last_epoch:
            part._update_lr(0)
        else:
            part.step()
        self._last_lr = part.get_last_lr()


class MixedChainedScheduler(Mixed, ChainedScheduler):
    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self._schedulers, self.optimizer = checked(self._class, schedulers, optimizer)
        self._last_lr = [kept(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch: None = None) -> None:  # type: ignore[override]
        """Sets the learning rates; call it after the optimizer's step."""
        for part in self._schedulers:
            part.step()
        self._last_lr = [kept(group["lr"]) for group in self.optimizer.param_groups]


# ---- schedules by a function ----

LR_LAMBDA = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int64, c_int64, POINTER(c_double))


class ByFunction(NativeScheduler):
    """A schedule with factors computed by a Python function."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factors, last_epoch: int = -1) -> None:
        check_optimizer(optimizer, last_epoch)
        n = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * n
        if len(functions) != n:
            raise ValueError(f"{n} functions are needed, one per group, not {len(functions)}")
        for f in functions:
            if not callable(f):
                raise TypeError(f"lr_lambda must be a function, not {type(f).__name__}")
        self.optimizer, self.lr_lambdas = optimizer, functions
        self._given = {"optimizer": optimizer, "lr_lambda": functions, "last_epoch": last_epoch}

        def factor(_user: Any, _ctx: Any, epoch: int, group: int, out: Any) -> int:
            def body() -> None:
                out[0] = float(functions[group](epoch))

            return guarded(body)

        self._callback = LR_LAMBDA(factor)  # lives as long as the handle
        self._handle = SchedulerHandle()
        with synchronized(optimizer):
            if getattr(lib, self._function)(
                local.ctx,
                native(optimizer)._handle,
                self._callback,
                None,
                None,
                c_int64(last_epoch),
                byref(self._handle),
            ):
                fail()

    def state_dict(self) -> dict[str, Any]:
        """Returns the state. It includes the attributes of callable objects, but no functions."""
        attributes = [
            None if isinstance(f, FunctionType) else dict(getattr(f, "__dict__", {}))
            for f in self.lr_lambdas
        ]
        return {**super().state_dict(), "lr_lambdas": attributes}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for f, attributes in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ())):
            if attributes:
                f.__dict__.update(attributes)


class LambdaLR(ByFunction):
    """Multiplies each group's initial learning rate by lr_lambda(step); a list has one function per
    group."""

    _class, _function = "LambdaLR", "tt_lr_lambda"


class MultiplicativeLR(ByFunction):
    """Multiplies each group's learning rate by lr_lambda(step) at every step."""

    _class, _function = "MultiplicativeLR", "tt_lr_multiplicative"


_LRScheduler = LRScheduler  # the base class's former name, which older scripts use
__all__ += _schedules.__all__


def __dir__() -> list[str]:
    return __all__
