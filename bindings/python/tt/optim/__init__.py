"""Optimizers and learning-rate schedules, with the API of torch.optim."""
from importlib import import_module

from . import _optimizers, lr_scheduler, swa_utils
from ._optimizers import *  # noqa: F403
from .lbfgs import LBFGS
from .matrix import Adafactor, Muon
from .optimizer import Optimizer
from .sparse_adam import SparseAdam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import adam as adam
    from . import adamw as adamw
    from . import sgd as sgd

__all__ = ["Adafactor", "LBFGS", "Muon", "Optimizer", "SparseAdam", "lr_scheduler", "swa_utils"]
__all__ += _optimizers.__all__
MODULES = "adam adamw sgd"  # loaded when they are first used

if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in MODULES.split():
            raise AttributeError(f"module 'tt.optim' has no attribute '{name}'")
        return import_module("." + name, __name__)


def __dir__() -> list[str]:
    return __all__
