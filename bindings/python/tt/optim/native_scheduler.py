"""NativeScheduler: the base of the learning-rate schedules that libtt computes."""
from __future__ import annotations

import warnings
from collections import Counter
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_double, c_int64, create_string_buffer
from typing import Any, Iterator
from weakref import WeakKeyDictionary

from .._construct import construct
from .._lib import Handle, fail, finalizer, lib, local, quick
from .._ops import zeros
from . import _optimizers
from .fractional import takes_fraction, with_fractions
from .native import OF_SCHEDULES, NativeOptimizer
from .optimizer import Optimizer
from .schedules import LRScheduler, check_optimizer, one_per_group, warn_of_epoch, warn_of_order

# ---- optimizers that are written in Python ----

SHARED = ("lr", "initial_lr", "momentum", "betas")  # values that schedules read and change
stand_ins: WeakKeyDictionary[Optimizer, NativeOptimizer] = WeakKeyDictionary()


def native(optimizer: Optimizer) -> NativeOptimizer:
    """Returns an optimizer that C's schedules can change.

    For an optimizer written in Python, or whose parameters were replaced, this is a stand-in with
    as many groups. `synchronized` copies the rates between both.
    """
    if isinstance(optimizer, NativeOptimizer):
        return optimizer._stand_in or optimizer
    if optimizer not in stand_ins:
        groups = [{"params": [zeros(1)]} for _ in optimizer.param_groups]
        stand_ins[optimizer] = stand_in_class(optimizer)(groups)
    return stand_ins[optimizer]


def stand_in_class(optimizer: Optimizer) -> Any:
    """Returns a stand-in class whose groups have the momentum settings of the optimizer's
    groups."""
    if "betas" in optimizer.defaults:
        return _optimizers.Adam
    return _optimizers.SGD if "momentum" in optimizer.defaults else _optimizers.Adagrad


@contextmanager
def synchronized(optimizer: Optimizer) -> Iterator[None]:
    """Copies the optimizer's rates to its stand-in, and changed rates back at the end of the
    block."""
    pairs: Any = ()
    of_c = optimizer if isinstance(optimizer, NativeOptimizer) else None
    if of_c is not None:
        of_c._settle()
    if native(optimizer) is not optimizer:
        pairs = list(zip(optimizer.param_groups, native(optimizer).param_groups))
    for group, stand_in in pairs:
        stand_in.update((key, group[key]) for key in SHARED if key in group)
    yield
    if of_c is not None and of_c._unsettled:
        for group in of_c.param_groups:
            group._read_all()  # into values that are tensors
    for group, stand_in in pairs:
        for key in SHARED:
            if key in stand_in and (key in group or key == "initial_lr"):
                group[key] = stand_in[key]


# ---- schedules of libtt ----


class SchedulerHandle(Handle):
    """Owns a tt_scheduler."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_scheduler_release)


class NativeScheduler(LRScheduler):
    """A schedule that libtt computes."""

    _class = ""  # name in messages
    _function = ""  # C function that constructs it
    _arguments: tuple[Any, ...] = ()  # rows as _construct.py describes them
    _handle: SchedulerHandle
    _given: dict[str, Any]  # arguments of the constructor, for pickle

    def _initialize(self, **values: Any) -> None:
        """Completes the constructor; values: its arguments by name."""
        if takes_fraction(self, values):
            self.__class__ = with_fractions(type(self))
            self._begin_in_python(values)  # type: ignore[attr-defined]
            return
        self._given = dict(values)
        self._begin(values)
        for key, value in values.items():
            if not hasattr(type(self), key) and key not in self.__dict__:
                self.__dict__[key] = value
        with synchronized(self.optimizer):
            given = {**values, "optimizer": native(self.optimizer)}
            self._handle = construct(
                SchedulerHandle, self._function, self._class, self._arguments, given
            )
        if self.__dict__.get("total_steps", 0) is None:
            self.__dict__["total_steps"] = values["epochs"] * values["steps_per_epoch"]
        self.optimizer._opt_called = False

    def __reduce__(self) -> Any:
        return restored, (type(self), self._given, self.optimizer, self.state_dict())

    def _begin(self, values: dict[str, Any]) -> None:
        """Checks the arguments and converts them for C."""
        optimizer = values["optimizer"]
        check_optimizer(optimizer, values["last_epoch"])
        self.optimizer = optimizer
        for name, kind, _, _ in self._arguments:
            value = values[name]
            if kind == "Float[]":
                values[name] = [float(x) for x in one_per_group(name, value, optimizer)]
            elif kind == "Int[]":
                values[name] = list(value)
            elif kind == "Int" and isinstance(value, float) and value.is_integer():
                values[name] = int(value)
            elif isinstance(kind, dict) and value not in kind:
                raise ValueError(f"{name} must be one of {sorted(kind)}, not {value!r}")

    @property  # type: ignore[override]
    def last_epoch(self) -> int:
        """The number of steps since the start."""
        return quick.tt_scheduler_last_epoch(self._handle)

    @last_epoch.setter
    def last_epoch(self, epoch: int) -> None:
        self._load_number("last_epoch", epoch)

    @property
    def _step_count(self) -> int:
        """The number of calls of step, with the one of the constructor."""
        return next(int(x) for name, x in self._numbers() if name == "_step_count")

    @_step_count.setter
    def _step_count(self, count: int) -> None:
        self._load_number("_step_count", count)

    @property
    def _last_lr(self) -> list[float]:
        return self.get_last_lr()

    @_last_lr.setter
    def _last_lr(self, rates: list[float]) -> None:
        self._load_state({"_last_lr": rates}, "")

    @property
    def base_lrs(self) -> list[float]:
        """The initial learning rates, one per group."""
        return self.state_dict()["base_lrs"]

    @base_lrs.setter
    def base_lrs(self, rates: list[float]) -> None:
        """Replaces the initial rates, as schedules that warm up another one do."""
        self._load_state({"base_lrs": one_per_group("base_lrs", rates, self.optimizer)}, "")

    def step(self, epoch: int | None = None) -> None:
        """Sets the learning rates; call it after the optimizer's step.

        epoch: sets the rates of this step by the closed form.
        """
        if epoch is None:
            warn_of_order(self)
        else:
            warn_of_epoch()
        self._step(epoch)

    def _step(self, epoch: int | None = None) -> None:
        with synchronized(self.optimizer):
            if epoch is None:
                status = lib.tt_scheduler_step(local.ctx, self._handle)
            else:
                status = lib.tt_scheduler_step_to(local.ctx, self._handle, c_int64(epoch))
            if status:
                fail()

    def _update_lr(self, epoch: int | None = None) -> None:
        self._step(epoch)

    def _initial_step(self) -> None:
        """Repeats the constructor's step from the optimizer's current rates."""
        begun = type(self)(**self._given)
        for name, number in begun._numbers():
            if not name.startswith("base_lrs"):
                self._load_number(name, number)

    def _undo(self) -> None:
        self._load_number("last_epoch", self.last_epoch - 1)

    def get_lr(self) -> list[float]:
        """Same as get_last_lr(), with a warning that names it."""
        warnings.warn("get_lr() returns get_last_lr(): call that instead", stacklevel=2)
        return self.get_last_lr()

    def get_last_lr(self) -> list[float]:
        """Returns the learning rates of the last step, one per group."""
        n, cap = c_int64(), len(self.optimizer.param_groups)
        rates = (c_double * max(cap, 1))()
        if lib.tt_scheduler_get_last_lr(local.ctx, self._handle, rates, c_int64(cap), byref(n)):
            fail()
        return list(rates[: n.value])

    def _numbers(self) -> Iterator[tuple[str, float]]:
        """Yields (name, number) of the state in C."""
        name, x = create_string_buffer(512), c_double()
        for i in range(quick.tt_scheduler_num_numbers(self._handle)):
            if lib.tt_scheduler_number_at(
                local.ctx, self._handle, c_int64(i), name, c_int64(512), byref(x)
            ):
                fail()
            yield name.value.decode(), x.value

    def _settings(self) -> list[str]:
        """Returns the names of the arguments that are attributes of PyTorch's schedule, too: of a
        composite none."""
        if any(name == "schedulers" for name, *_ in self._arguments):
            return []
        return [
            name
            for name, kind, _, _ in self._arguments
            if kind in ("Float", "Int", "Int[]") and name in self.__dict__ and name != "last_epoch"
        ]

    def state_dict(self) -> dict[str, Any]:
        """Returns steps, rates and arguments such as gamma. A composite has the states of its
        schedules under "_schedulers"."""
        root: dict[str, Any] = {name: self.__dict__[name] for name in self._settings()}
        if "milestones" in root:
            root["milestones"] = Counter(root["milestones"])  # as PyTorch's
        for name, value in self._numbers():
            state, keys = root, name.split(".")
            while keys[0].isdigit():
                parts, i = state.setdefault("_schedulers", []), int(keys.pop(0))
                parts.extend({} for _ in range(i + 1 - len(parts)))
                state = parts[i]
            if len(keys) == 1:
                state[keys[0]] = int(value)
            else:
                state.setdefault(keys[0], []).append(value)
        return root

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state_dict(): all of it, or nothing if it raises."""
        handle, given, numbers = self._handle, self._given, list(self._numbers())
        settings = {name: self.__dict__[name] for name in self._settings()}
        try:
            self._load_all(state_dict)
        except Exception:
            self._handle, self._given = handle, given
            self.__dict__.update(settings)
            for name, value in numbers:
                self._load_number(name, value)
            raise

    def _load_all(self, state_dict: dict[str, Any]) -> None:
        changed = {}
        for name in self._settings():
            value = state_dict.get(name, self.__dict__[name])
            if isinstance(value, Counter):  # PyTorch's milestones
                value = sorted(value.elements())
            if value != self.__dict__[name]:
                changed[name] = value
        if changed:
            other = restored(type(self), {**self._given, **changed}, self.optimizer, {})
            self._handle, self._given = other._handle, other._given
            self.__dict__.update(changed)
        self._load_state(state_dict, "")

    def _load_state(self, state: dict[str, Any], prefix: str) -> None:
        for key, value in state.items():
            if key == "_schedulers":
                for i, part in enumerate(value):
                    self._load_state(part, f"{prefix}{i}.")
            elif key in ("base_lrs", "_last_lr"):
                for i, x in enumerate(value):
                    self._load_number(f"{prefix}{key}.{i}", x)
            elif key in ("last_epoch", "_step_count"):
                self._load_number(prefix + key, value)

    def _load_number(self, name: str, value: float) -> None:
        if lib.tt_scheduler_load_number(
            local.ctx, self._handle, c_char_p(name.encode()), c_double(value)
        ):
            fail()


def restored(
    cls: Any, given: dict[str, Any], optimizer: Optimizer, state: dict[str, Any]
) -> NativeScheduler:
    """Unpickles a schedule without changing the optimizer again."""
    before = []
    for group in optimizer.param_groups:
        before.append({key: group[key] for key in (*SHARED, *OF_SCHEDULES) if key in group})
    scheduler = cls(**given)
    scheduler.load_state_dict(state)
    for group, values in zip(optimizer.param_groups, before):
        group.update(values)
    return scheduler
