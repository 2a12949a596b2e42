"""tt: tensors, gradients and neural networks over libtt. Names and conventions are PyTorch's.

What is not needed at once is loaded when it is asked for: operators, layers, optimizers.
"""
from importlib import import_module

from . import _lib, _operators, _ops, _types  # noqa: F401  (_operators completes Tensor)
from ._lib import VERSION as __version__
from ._tensor import Tensor
from ._types import Size, device, dtype, memory_format
from .errors import TtError

MODULES = (
    "autograd cuda errors library linalg nn optim profiler random runtime safetensors serialization"
)
# module -> names that users find here
ELSEWHERE = {
    "_create": "as_tensor from_numpy frombuffer scalar_tensor tensor",
    "_dlpack": "from_dlpack",
    "_facts": "is_complex is_floating_point",
    "_handles": "build_info get_num_threads set_num_threads",
    "_limits": "finfo iinfo",
    "_numbers": "allclose can_cast e equal inf nan newaxis pi promote_types result_type",
    "autograd": "enable_grad inference_mode is_anomaly_enabled is_grad_enabled no_grad set_grad_enabled",
    "random": "Generator default_generator get_rng_state initial_seed manual_seed set_rng_state",
    "serialization": "load save",
}
HOME = {name: module for module, names in ELSEWHERE.items() for name in names.split()}
globals().update(_types.PUBLIC)
__all__ = sorted(
    {
        *MODULES.split(),
        *HOME,
        *_ops.PLACES["tt"].split(),
        *_types.PUBLIC,
        "Size",
        "Tensor",
        "TtError",
        "device",
        "dtype",
        "get_default_dtype",
        "is_tensor",
        "memory_format",
    }
)


def __getattr__(name):
    if name in MODULES.split():
        return import_module("." + name, __name__)
    if name in HOME:
        found = getattr(import_module("." + HOME[name], __name__), name)
    elif name in __all__:
        found = _ops.find("tt", name)
    else:
        raise AttributeError(f"module 'tt' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *__all__})


def is_tensor(x):
    return isinstance(x, Tensor)


def get_default_dtype():
    """Of floating numbers without a dtype."""
    return _types.float32
