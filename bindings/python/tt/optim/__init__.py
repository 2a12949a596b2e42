"""Optimizers and learning-rate schedules, by the names of torch.optim."""
from . import lr_scheduler
from .optimizer import NATIVE, Optimizer

globals().update(NATIVE)
__all__ = ["Optimizer", "lr_scheduler", *NATIVE]
