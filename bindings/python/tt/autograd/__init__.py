"""Gradients: backward, grad, grad modes, and functions with custom gradients.

Grad modes are per thread: another thread records, even if it is started in a no_grad block.
"""
from __future__ import annotations

from importlib import import_module

from .._handles import is_anomaly_enabled, is_grad_enabled
from ._gradients import backward, grad
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import Mode, enable_grad, inference_mode, no_grad, set_grad_enabled
from .grad_mode import set_multithreading_enabled
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .variable import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import forward_ad as forward_ad
    from . import functional as functional
    from . import graph as graph
    from . import profiler as profiler

__all__ = [
    "Function",
    "GradcheckError",
    "Mode",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _is_checkpoint_valid() -> bool:
    """Returns True: a checkpoint may compute its part again in any backward."""
    return True


MODULES = ("forward_ad", "functional", "graph", "profiler")  # loaded when they are first used


if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in MODULES:
            raise AttributeError(f"module 'tt.autograd' has no attribute '{name}'")
        return import_module("." + name, __name__)


def __dir__() -> list[str]:
    return __all__
