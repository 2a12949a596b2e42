"""Schedules of libtt with a fractional number where C takes an integer, as T_max=4.5: Python
computes their rates."""
from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from typing import Any, Callable

from .schedules import LRScheduler, check_optimizer


def is_fraction(x: Any) -> bool:
    return isinstance(x, float) and not x.is_integer()


def takes_fraction(schedule: Any, values: dict[str, Any]) -> bool:
    """Returns whether an integer among the arguments is a fraction and Python has the formula."""
    if schedule._class not in NEXT_RATE:
        return False
    for name, kind, _, _ in schedule._arguments:
        if kind == "Int" and is_fraction(values[name]):
            return True
        if kind == "Int[]" and any(map(is_fraction, values[name])):
            return True
    return False


class Fractional(LRScheduler):
    """A mixin before a class of C's schedules, which replaces what that one asks C for."""

    _class: str
    last_epoch: Any = None  # attributes of the object, instead of properties that ask C
    base_lrs: Any = None
    _step_count: Any = None
    _last_lr: Any = None

    step = LRScheduler.step
    get_last_lr = LRScheduler.get_last_lr
    state_dict = LRScheduler.state_dict
    load_state_dict = LRScheduler.load_state_dict
    _initial_step = LRScheduler._initial_step
    _update_lr = LRScheduler._update_lr
    _undo = LRScheduler._undo

    def __reduce__(self) -> Any:
        return blank, (type(self).__mro__[2],), self.__dict__

    def _begin_in_python(self, values: dict[str, Any]) -> None:
        check_optimizer(values["optimizer"], values["last_epoch"])
        check_factors(self._class, values)
        self.__dict__.update(values)
        if "milestones" in values:
            self.__dict__["milestones"] = Counter(values["milestones"])
        LRScheduler.__init__(self, values["optimizer"], values["last_epoch"])

    def get_lr(self) -> list[Any]:
        rate = NEXT_RATE[self._class]
        groups = self.optimizer.param_groups
        return [rate(self, group["lr"], base) for group, base in zip(groups, self.base_lrs)]

    def _get_closed_form_lr(self) -> list[Any]:
        rate = RATE_OF_STEP[self._class]
        return [rate(self, base) for base in self.base_lrs]


def with_fractions(cls: Any) -> Any:
    """Returns the subclass of a schedule's class that Python computes."""
    found = vars(cls).get("_with_fractions")
    if found is None:
        found = type(cls.__name__, (Fractional, cls), {"__module__": cls.__module__})
        cls._with_fractions = found
    return found


def blank(cls: type) -> Any:
    """Unpickles a Fractional. Pickle sets its attributes afterwards."""
    return object.__new__(with_fractions(cls))


def check_factors(name: str, values: dict[str, Any]) -> None:
    """Raises ValueError for factors that the schedule does not take."""
    for key, low, rule in (
        ("factor", 0, "in [0, 1]"),
        ("start_factor", math.ulp(0.0), "in (0, 1]"),
        ("end_factor", 0, "in [0, 1]"),
    ):
        if key in values and not low <= values[key] <= 1:
            raise ValueError(f"{name}: {key} is {values[key]}: must be {rule}")


# ---- the rate of the next step: from the schedule, a group's present rate and its initial one ----


def next_step_rate(s: Any, lr: Any, base: Any) -> Any:
    decays = s.last_epoch != 0 and s.last_epoch % s.step_size == 0
    return lr * s.gamma if decays else lr


def next_multi_step_rate(s: Any, lr: Any, base: Any) -> Any:
    repeats = s.milestones[s.last_epoch]
    return lr * s.gamma**repeats if repeats else lr


def next_constant_rate(s: Any, lr: Any, base: Any) -> Any:
    return lr * s.factor if s.last_epoch == 0 else lr  # no step is a fractional total_iters


def next_linear_rate(s: Any, lr: Any, base: Any) -> Any:
    if s.last_epoch == 0:
        return lr * s.start_factor
    if s._is_initial or s.last_epoch > s.total_iters:
        return lr
    change = s.end_factor - s.start_factor
    before = s.total_iters * s.start_factor + (s.last_epoch - 1) * change
    return lr * (1.0 + change / before)


def next_polynomial_rate(s: Any, lr: Any, base: Any) -> Any:
    if s._is_initial or s.last_epoch > s.total_iters:
        return lr
    left = 1.0 - s.last_epoch / s.total_iters
    left_before = 1.0 - (s.last_epoch - 1) / s.total_iters
    return lr * (left / left_before) ** s.power


def next_cosine_rate(s: Any, lr: Any, base: Any) -> Any:
    if s._is_initial:
        return lr
    if s._step_count == 1 and s.last_epoch > 0:
        return s.eta_min + (base - s.eta_min) * (1 + math.cos(s.last_epoch * math.pi / s.T_max)) / 2
    if (s.last_epoch - 1 - s.T_max) % (2 * s.T_max) == 0:  # the last rate was eta_min
        return lr + (base - s.eta_min) * (1 - math.cos(math.pi / s.T_max)) / 2
    height = 1 + math.cos(math.pi * s.last_epoch / s.T_max)
    height_before = 1 + math.cos(math.pi * (s.last_epoch - 1) / s.T_max)
    return height / height_before * (lr - s.eta_min) + s.eta_min


NEXT_RATE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ConstantLR": next_constant_rate,
    "CosineAnnealingLR": next_cosine_rate,
    "LinearLR": next_linear_rate,
    "MultiStepLR": next_multi_step_rate,
    "PolynomialLR": next_polynomial_rate,
    "StepLR": next_step_rate,
}

# ---- the rate of a step, in closed form ----


def step_rate(s: Any, base: Any) -> Any:
    return base * s.gamma ** (s.last_epoch // s.step_size)


def multi_step_rate(s: Any, base: Any) -> Any:
    return base * s.gamma ** bisect_right(sorted(s.milestones.elements()), s.last_epoch)


def constant_rate(s: Any, base: Any) -> Any:
    return base * (s.factor + (s.last_epoch >= s.total_iters) * (1 - s.factor))


def linear_rate(s: Any, base: Any) -> Any:
    steps = min(s.total_iters, s.last_epoch)
    return base * (s.start_factor + (s.end_factor - s.start_factor) * steps / s.total_iters)


def polynomial_rate(s: Any, base: Any) -> Any:
    return base * (1.0 - min(s.total_iters, s.last_epoch) / s.total_iters) ** s.power


def cosine_rate(s: Any, base: Any) -> Any:
    height = 1 + math.cos(math.pi * s.last_epoch / s.T_max)
    return s.eta_min + (base - s.eta_min) * height / 2


RATE_OF_STEP: dict[str, Callable[[Any, Any], Any]] = {
    "ConstantLR": constant_rate,
    "CosineAnnealingLR": cosine_rate,
    "LinearLR": linear_rate,
    "MultiStepLR": multi_step_rate,
    "PolynomialLR": polynomial_rate,
    "StepLR": step_rate,
}
