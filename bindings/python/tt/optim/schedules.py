"""The base of learning-rate schedules, and those that only Python has. tt.optim.lr_scheduler has their names."""
import math
from types import FunctionType

from .._tensor import Tensor
from .optimizer import Optimizer


def check_optimizer(optimizer, last_epoch):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    for i, group in enumerate(optimizer.param_groups):
        if last_epoch != -1 and "initial_lr" not in group:
            raise KeyError(
                f"param 'initial_lr' is not specified in param_groups[{i}] when resuming a scheduler with last_epoch {last_epoch}"
            )


def kept(lr):
    """A rate that does not follow later changes."""
    return lr.detach().clone() if isinstance(lr, Tensor) else lr


def one_per_group(name, value, optimizer):
    """A list as it is, else one value for every group."""
    n = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * n
    if len(values) != n:
        raise ValueError(f"{name} must have {n} values, one per group, not {len(values)}")
    return values


class LRScheduler:
    """Base class: get_lr() gives the rates after step self.last_epoch."""

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer, last_epoch)
        self.optimizer, self.last_epoch = optimizer, last_epoch
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", kept(group["lr"]))
        self.base_lrs = [kept(group["initial_lr"]) for group in optimizer.param_groups]
        self._initial_step()

    def _initial_step(self):
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def get_lr(self):
        raise NotImplementedError("a subclass of LRScheduler must define get_lr")

    def get_last_lr(self):
        """The rates that the last step has set, one per group."""
        return self._last_lr

    def step(self, epoch=None):
        """Sets the rates; call it after the optimizer's step."""
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        self._set(closed() if closed and epoch is not None else self.get_lr())

    def _undo(self):
        """Takes back the step that the constructor made."""
        self.last_epoch -= 1

    def _set(self, rates):
        """The rates from now on, one per group; a rate that is a tensor stays one."""
        for group, lr in zip(self.optimizer.param_groups, rates):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self._last_lr = [kept(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self):
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lets each learning rate fall to eta_min as half a cosine in T_0 steps, then again from the start in T_mult times as many. step(epoch) takes
    fractions of an epoch, too."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"T_0 must be a positive integer, not {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"T_mult must be an integer and at least 1, not {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = (
            T_0,
            T_0,
            T_mult,
            eta_min,
            last_epoch,
        )
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [
            self.eta_min + (lr - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
            for lr in self.base_lrs
        ]

    def step(self, epoch=None):
        """Sets the rates; call it after the optimizer's step, or with the epoch so far, after a part of it."""
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

    def _go_to(self, epoch):
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts


class CyclicLR(LRScheduler):
    """Lets each learning rate rise from base_lr to max_lr in step_size_up steps and fall back in step_size_down, again and again, while the momentum
    (or beta1) does the opposite. mode: triangular, triangular2 (each cycle half as high) or exp_range (gamma per step), or scale_fn by scale_mode.
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        check_optimizer(optimizer, last_epoch)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                f"mode must be triangular, triangular2 or exp_range, or scale_fn be given, not {mode!r}"
            )
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError(
                "the optimizer has neither momentum nor betas: set cycle_momentum=False"
            )
        self.optimizer = optimizer
        base_lrs, self.max_lrs = one_per_group("base_lr", base_lr, optimizer), one_per_group(
            "max_lr", max_lr, optimizer
        )
        up, down = float(step_size_up), float(
            step_size_up if step_size_down is None else step_size_down
        )
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma, self._scale_fn_custom, self.scale_mode = (
            mode,
            gamma,
            scale_fn,
            scale_mode,
        )
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            self._set(base_lrs)
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = one_per_group("base_momentum", base_momentum, optimizer)
            self.max_momentums = one_per_group("max_momentum", max_momentum, optimizer)
            if last_epoch == -1:
                self._set_momentums(self.max_momentums)
                for group, low, high in zip(
                    optimizer.param_groups, self.base_momentums, self.max_momentums
                ):
                    group.update(max_momentum=high, base_momentum=low)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _set_momentums(self, momentums):
        for group, momentum in zip(self.optimizer.param_groups, momentums):
            if self.use_beta1:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum

    def scale_fn(self, x):
        """How high cycle, or step, x is."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}[
            self.mode
        ]

    def get_lr(self):
        """Sets the momentums, too."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            self._set_momentums(
                [
                    high - (high - low) * height * scale
                    for low, high in zip(self.base_momentums, self.max_momentums)
                ]
            )
        return [
            low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs)
        ]

    def state_dict(self):
        """Without scale_fn if it is a function; of an object that can be called, its attributes."""
        fn = self._scale_fn_custom
        return {
            **super().state_dict(),
            "_scale_fn_custom": None
            if fn is None or isinstance(fn, FunctionType)
            else dict(fn.__dict__),
        }

    def load_state_dict(self, state_dict):
        attributes = state_dict.get("_scale_fn_custom")
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict(
            {key: value for key, value in state_dict.items() if key != "_scale_fn_custom"}
        )


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rates by factor once the metric that step() is given has not become better for more than patience steps. Better: by
    threshold, a share of the best one (rel) or a difference (abs); then cooldown steps do not count.
    """

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        check_optimizer(optimizer, -1)
        if factor >= 1:
            raise ValueError(f"factor must be less than 1, not {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"mode must be min or max and threshold_mode rel or abs, not {mode!r} and {threshold_mode!r}"
            )
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = (
            threshold,
            threshold_mode,
            cooldown,
            eps,
        )
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = one_per_group("min_lr", min_lr, optimizer)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch, self._last_lr = 0, [kept(group["lr"]) for group in optimizer.param_groups]
        self._reset()

    def _reset(self):
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self):
        return self.cooldown_counter > 0

    def step(self, metrics, epoch=None):
        """metrics: a number, or a tensor of one element."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        if self.in_cooldown:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [kept(group["lr"]) for group in self.optimizer.param_groups]

    def _is_better(self, a, best):
        sign = -1 if self.mode == "min" else 1
        bound = (
            best * (1.0 + sign * self.threshold)
            if self.threshold_mode == "rel"
            else best + sign * self.threshold
        )
        return a < bound if self.mode == "min" else a > bound

    def _reduce_lr(self):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"the optimizer has {len(groups)} groups, min_lr was given for {len(self.min_lrs)}: change min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        old = [float(group["lr"]) for group in groups]
        new = [max(lr * self.factor, low) for lr, low in zip(old, self.min_lrs)]
        self._set([n if o - n > self.eps else o for o, n in zip(old, new)])
