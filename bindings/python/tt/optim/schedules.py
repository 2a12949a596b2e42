"""The base class of learning-rate schedules, and the schedules written in Python.

tt.optim.lr_scheduler has all schedules.
"""
from __future__ import annotations

import math
import warnings
from types import FunctionType
from typing import Any, Callable, Sequence, Union

from .._tensor import Tensor
from .optimizer import Optimizer

PerGroup = Union[float, Sequence[float]]


def check_optimizer(optimizer: Any, last_epoch: int) -> None:
    """Raises unless optimizer is an Optimizer, which must have initial learning rates for a resumed
    schedule."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    for i, group in enumerate(optimizer.param_groups):
        if last_epoch != -1 and "initial_lr" not in group:
            raise KeyError(
                f"param 'initial_lr' is not specified in param_groups[{i}] when resuming a "
                f"scheduler with last_epoch {last_epoch}"
            )


def warn_of_order(scheduler: LRScheduler) -> None:
    """Warns if the first step of a schedule comes before the first one of its optimizer."""
    if scheduler.last_epoch == 0 and not scheduler.optimizer._opt_called:
        warnings.warn(
            "lr_scheduler.step() is called before optimizer.step(): the first value of the "
            "schedule is skipped; call optimizer.step() first",
            stacklevel=3,
        )


# PyTorch's name, which schedules of other packages import
EPOCH_DEPRECATION_WARNING = (
    "lr_scheduler.step(epoch) is deprecated: call step() without an argument"
)


def warn_of_epoch() -> None:
    """Warns that the argument `epoch` of step is deprecated."""
    warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=3)


def kept(lr: Any) -> Any:
    """Returns a copy of a learning rate, which later in-place changes do not affect."""
    return lr.detach().clone() if isinstance(lr, Tensor) else lr


def one_per_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """Returns a list unchanged, or a single value repeated for each group."""
    n = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * n
    if len(values) != n:
        raise ValueError(f"{name} must have {n} values, one per group, not {len(values)}")
    return values


class LRScheduler:
    """The base class of schedules. A subclass defines get_lr(), the rates after step
    self.last_epoch.

    last_epoch: -1 starts a schedule; other numbers resume it, and the groups must have
    "initial_lr".
    """

    optimizer: Optimizer
    last_epoch: int
    base_lrs: list[Any]
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer, last_epoch)
        self.optimizer, self.last_epoch = optimizer, last_epoch
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", kept(group["lr"]))
        self.base_lrs = [kept(group["initial_lr"]) for group in optimizer.param_groups]
        self._initial_step()
        optimizer._opt_called = False

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[Any]:
        """Returns the learning rates after step self.last_epoch, one per group."""
        raise NotImplementedError("a subclass of LRScheduler must define get_lr")

    def get_last_lr(self) -> list[Any]:
        """Returns the learning rates that the last step has set, one per group."""
        return self._last_lr

    def step(self, epoch: Any = None) -> None:
        """Sets the learning rates; call it after the optimizer's step.

        epoch: computes the rates of this step, by the closed form if there is one.
        """
        if self._step_count == 1:
            warn_of_order(self)
        if epoch is not None:
            warn_of_epoch()
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: Any = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        self._set(closed() if closed and epoch is not None else self.get_lr())

    def _undo(self) -> None:
        """Undoes the constructor's step."""
        self.last_epoch -= 1

    def _set(self, rates: list[Any]) -> None:
        """Sets the learning rates, one per group. A tensor changes in place."""
        for group, lr in zip(self.optimizer.param_groups, rates):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self._keep_last_lr()

    def _keep_last_lr(self) -> None:
        self._last_lr = [kept(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Returns all attributes but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a result of state_dict()."""
        self.__dict__.update(state_dict)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers each learning rate along half a cosine, and restarts it: Loshchilov and Hutter, 2017.

    T_0: number of steps before the first restart. T_mult: factor of this number after each restart.
    eta_min: the lowest rate.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"T_0 must be a positive integer, not {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"T_mult must be an integer and at least 1, not {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0  # steps from one restart to the next
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch  # steps since the last restart
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        factor = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * factor for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Sets the learning rates; call it after the optimizer's step.

        epoch: the number of epochs so far, which may be fractional.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = epoch or 0
            if epoch < 0:
                raise ValueError(f"epoch must not be negative, not {epoch}")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _go_to(self, epoch: float) -> None:
        """Sets T_cur and T_i for an epoch."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts


class CyclicLR(LRScheduler):
    """Moves each learning rate up and down between base_lr and max_lr: Smith, 2017.

    base_lr, max_lr: one number, or a list with one per group; likewise for the momentums.
    step_size_up, step_size_down: steps of each half of a cycle; step_size_down=None: step_size_up.
    mode: "triangular"; "triangular2" halves the height each cycle; "exp_range" multiplies it by
        gamma each step.
    scale_fn, scale_mode: instead of mode, the height as a function of the "cycle" or of
        "iterations".
    cycle_momentum: moves the momentum, or beta1, in the opposite direction between max_momentum and
        base_momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: PerGroup,
        max_lr: PerGroup,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: PerGroup = 0.8,
        max_momentum: PerGroup = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer, last_epoch)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                "mode must be triangular, triangular2 or exp_range, or scale_fn be given, "
                f"not {mode!r}"
            )
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError(
                "the optimizer has neither momentum nor betas: set cycle_momentum=False"
            )
        self.optimizer = optimizer
        base_lrs = one_per_group("base_lr", base_lr, optimizer)
        self.max_lrs = one_per_group("max_lr", max_lr, optimizer)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom, self.scale_mode = scale_fn, scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            self._set(base_lrs)
        if cycle_momentum:
            self._begin_momentums(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _begin_momentums(
        self, base_momentum: PerGroup, max_momentum: PerGroup, last_epoch: int
    ) -> None:
        self.use_beta1 = "betas" in self.optimizer.defaults
        self.base_momentums = one_per_group("base_momentum", base_momentum, self.optimizer)
        self.max_momentums = one_per_group("max_momentum", max_momentum, self.optimizer)
        if last_epoch != -1:
            return
        self._set_momentums(self.max_momentums)
        limits = zip(self.base_momentums, self.max_momentums)
        for group, (low, high) in zip(self.optimizer.param_groups, limits):
            group.update(max_momentum=high, base_momentum=low)

    def _set_momentums(self, momentums: list[Any]) -> None:
        for group, momentum in zip(self.optimizer.param_groups, momentums):
            if self.use_beta1:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum

    def scale_fn(self, x: float) -> float:
        """Returns the height of cycle x, or at step x."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        """Returns the learning rates, and sets the momentums."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.base_momentums, self.max_momentums)
            self._set_momentums([high - (high - low) * height * scale for low, high in limits])
        limits = zip(self.base_lrs, self.max_lrs)
        return [low + (high - low) * height * scale for low, high in limits]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state. It includes the attributes of scale_fn if that is an object, but no
        function."""
        fn = self._scale_fn_custom
        plain = fn is None or isinstance(fn, FunctionType)
        return {**super().state_dict(), "_scale_fn_custom": None if plain else dict(fn.__dict__)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        own = dict(state_dict)
        attributes = own.pop("_scale_fn_custom", None)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict(own)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rates by factor when a metric stops improving.

    mode: whether a lower ("min") or a higher ("max") metric is better.
    patience: number of steps without improvement that are allowed.
    threshold, threshold_mode: an improvement must exceed this fraction of the best metric ("rel")
        or this difference ("abs").
    cooldown: number of ignored steps after a reduction. min_lr: the lowest rate, for all groups or
        per group.
    eps: smaller changes of a rate are ignored.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: PerGroup = 0,
        eps: float = 1e-8,
    ) -> None:
        check_optimizer(optimizer, -1)
        if factor >= 1:
            raise ValueError(f"factor must be less than 1, not {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                "mode must be min or max and threshold_mode rel or abs, "
                f"not {mode!r} and {threshold_mode!r}"
            )
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = one_per_group("min_lr", min_lr, optimizer)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = 0
        self._keep_last_lr()
        self._reset()

    def _reset(self) -> None:
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction was less than `cooldown` steps ago."""
        return self.cooldown_counter > 0

    def step(  # type: ignore[override]
        self, metrics: float | Tensor, epoch: int | None = None
    ) -> None:
        """Records a step with this metric, a number or a tensor of one element."""
        current = float(metrics)
        # refused in a capture, whose runs would not repeat this step
        self._set([group["lr"] for group in self.optimizer.param_groups])
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._keep_last_lr()

    def _is_better(self, a: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a < bound if self.mode == "min" else a > bound

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"the optimizer has {len(groups)} groups, "
                    f"min_lr was given for {len(self.min_lrs)}: change min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        rates = []
        for group, lowest in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            rates.append(new if old - new > self.eps else old)
        self._set(rates)
