"""Training utilities: data loading, activation checkpointing, timers, logs for TensorBoard. Modules
are imported on first use."""
from __future__ import annotations

from importlib import import_module

from .._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import _pytree as _pytree
    from . import benchmark as benchmark
    from . import checkpoint as checkpoint
    from . import collect_env as collect_env
    from . import data as data
    from . import deterministic as deterministic
    from . import dlpack as dlpack
    from . import flop_counter as flop_counter
    from . import hooks as hooks
    from . import model_zoo as model_zoo
    from . import tensorboard as tensorboard

MODULES = (
    "benchmark checkpoint collect_env data deterministic dlpack flop_counter hooks model_zoo "
    "tensorboard"
).split()
__all__ = [*MODULES, "swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges two leaves: their values, shapes, dtypes, gradients, attributes and classes."""
    from ..autograd import no_grad

    if not (t1.is_leaf and t2.is_leaf):
        raise RuntimeError("swap_tensors: t1 and t2 must be leaves")
    with no_grad():
        flags, grads = (t1.requires_grad, t2.requires_grad), (t1.grad, t2.grad)
        data = t1.detach(), t2.detach()
        t1.grad = t2.grad = None
        t1.data, t2.data = data[1], data[0]
    for t, flag, grad in ((t1, flags[1], grads[1]), (t2, flags[0], grads[0])):
        t.requires_grad_(flag)
        t.grad = grad
    if type(t1) is not type(t2):
        t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    attributes = t1._attributes(), t2._attributes()
    for t, own, other in ((t1, *attributes), (t2, *attributes[::-1])):
        for name in own:
            del t.__dict__[name]
        t.__dict__.update(other)


if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in MODULES and name not in ("_pytree", "_python_dispatch"):
            raise AttributeError(f"module 'tt.utils' has no attribute '{name}'")
        return import_module("." + name, __name__)


def __dir__() -> list[str]:
    return __all__
