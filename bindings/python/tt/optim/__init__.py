"""Optimizers and learning-rate schedules, with the API of torch.optim."""
from . import _optimizers, lr_scheduler, swa_utils
from ._optimizers import *  # noqa: F403
from .lbfgs import LBFGS
from .matrix import Adafactor, Muon
from .optimizer import Optimizer
from .sparse_adam import SparseAdam

__all__ = ["Adafactor", "LBFGS", "Muon", "Optimizer", "SparseAdam", "lr_scheduler", "swa_utils"]
__all__ += _optimizers.__all__


def __dir__() -> list[str]:
    return __all__
