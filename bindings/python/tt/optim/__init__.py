"""Optimizers and learning-rate schedules, by the names of torch.optim."""
from . import _optimizers, lr_scheduler
from ._optimizers import *  # noqa: F403
from .optimizer import Optimizer

__all__ = ["Optimizer", "lr_scheduler"]
__all__ += _optimizers.__all__
