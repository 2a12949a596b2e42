"""Averages of a model's parameters during training, with the API of torch.optim.swa_utils."""
from __future__ import annotations

import math
from copy import deepcopy
from itertools import chain
from typing import Any, Callable, Iterable, List, Union

from .. import _ops as ops
from .._dtype_names import int64
from .._tensor import Tensor
from ..autograd import no_grad
from ..nn.layer import NormLayer
from ..nn.module import Module
from .optimizer import Optimizer
from .schedules import LRScheduler, one_per_group
from .schedules import PerGroup

Tensors = Union[List[Tensor], "tuple[Tensor, ...]"]
Average = Callable[[Tensor, Tensor, Any], Tensor]
AverageAll = Callable[[Tensors, Tensors, Any], None]

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(f"decay is {decay}: must be in [0, 1]")


def can_average(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Returns the function (average, current, n) -> decay * average + (1 - decay) * current."""
    check_decay(decay)

    @no_grad
    def ema_update(average: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return average * decay + current * (1 - decay)

    return ema_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageAll:
    """Returns the in-place variant of get_ema_avg_fn's function for lists of tensors."""
    check_decay(decay)

    @no_grad
    def ema_update(averages: Tensors, currents: Tensors, num_averaged: Any) -> None:
        for average, current in zip(averages, currents):
            if can_average(average):
                average.add_(current - average, alpha=1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_avg_fn() -> Average:
    """Returns the function (average, current, n) -> average + (current - average) / (n + 1)."""

    @no_grad
    def swa_update(average: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return average + (current - average) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn() -> AverageAll:
    """Returns the in-place variant of get_swa_avg_fn's function for lists of tensors."""
    one = get_swa_avg_fn()

    @no_grad
    def swa_update(averages: Tensors, currents: Tensors, num_averaged: Any) -> None:
        for average, current in zip(averages, currents):
            average.copy_(one(average, current, num_averaged))

    return swa_update


class AveragedModel(Module):
    """A copy of a model with averages of its parameters (Izmailov et al. 2018).
    update_parameters(model) adds the current parameters to the averages. A call runs the copy, the
    attribute `module`.

    model: the model
    device: device of the copy
    avg_fn: (average, current, number of models so far) -> new average; by default the mean
    multi_avg_fn: the same for lists of tensors, in place; instead of avg_fn
    use_buffers: whether to average buffers, too; otherwise they are copied from the model
    """

    __module__ = "tt.optim.swa_utils"

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("avg_fn and multi_avg_fn are given: only one may be")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", ops.zeros((), dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad
    def update_parameters(self, model: Module) -> None:
        """Adds the model's parameters to the averages. The first call copies them."""
        own: Any = self.module.parameters()
        given: Any = model.parameters()
        if self.use_buffers:
            own = chain(own, self.module.buffers())
            given = chain(given, model.buffers())
        averages = [x.detach() for x in own]
        currents = [y.detach().to(x.device) for x, y in zip(averages, given)]
        count = int(self.n_averaged.item())
        if count == 0:
            for x, y in zip(averages, currents):
                x.copy_(y)
        elif self.avg_fn is not None:
            for x, y in zip(averages, currents):
                x.copy_(self.avg_fn(x, y, self.n_averaged.to(x.device)))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            alike: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for x, y in zip(averages, currents):
                parts = alike.setdefault((str(x.device), x.dtype), ([], []))
                parts[0].append(x)
                parts[1].append(y)
            for xs, ys in alike.values():
                update(xs, ys, self.n_averaged.to(xs[0].device))
        if not self.use_buffers:
            for x, y in zip(self.module.buffers(), model.buffers()):
                x.detach().copy_(y.detach())
        self.n_averaged += 1


@no_grad
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recomputes the running statistics of the model's batch normalisations as means over all
    batches of a loader.

    loader: an iterable of batches, or of lists or tuples whose first item is a batch
    device: device to which batches are moved
    """
    layers = [m for m in model.modules() if isinstance(m, NormLayer)]
    if not layers:
        return
    momenta: list[Any] = [layer.momentum for layer in layers]
    was_training = model.training
    model.train()
    try:
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    finally:
        for layer, momentum in zip(layers, momenta):
            layer.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rate of each group to a fixed one in anneal_epochs steps.

    optimizer: optimizer whose learning rates are scheduled
    swa_lr: the fixed rate: one number for all groups, or one per group
    anneal_epochs: number of steps of the annealing
    anneal_strategy: cos: along half a cosine; linear: along a line
    last_epoch: number of steps already taken, less one; -1 starts a schedule
    """

    __module__ = "tt.optim.swa_utils"

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: PerGroup,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is {anneal_strategy!r}: must be 'cos' or 'linear'")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs is {anneal_epochs}: must be an integer, at least 0")
        for rate, group in zip(one_per_group("swa_lr", swa_lr, optimizer), optimizer.param_groups):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Returns the fraction of the annealing that is done after a step."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        """Returns the learning rates after this step, one per group."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            last = group["swa_lr"]
            first = last if before == 1 else (group["lr"] - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates


def __dir__() -> list[str]:
    return __all__
