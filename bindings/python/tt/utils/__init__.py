"""Training utilities: data loading, activation checkpointing, timers, logs for TensorBoard. Modules
are imported on first use."""
from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import _pytree as _pytree
    from . import benchmark as benchmark
    from . import checkpoint as checkpoint
    from . import data as data
    from . import dlpack as dlpack
    from . import hooks as hooks
    from . import model_zoo as model_zoo
    from . import tensorboard as tensorboard

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "model_zoo", "tensorboard"]

if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in __all__ and name != "_pytree":
            raise AttributeError(f"module 'tt.utils' has no attribute '{name}'")
        return import_module("." + name, __name__)


def __dir__() -> list[str]:
    return __all__
