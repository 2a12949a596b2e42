"""PyTorch's settings, and tt under PyTorch's name."""
from __future__ import annotations

import math
import pkgutil
import sys
import warnings
from ctypes import c_int32, c_int64
from importlib import import_module
from types import ModuleType
from typing import Any

from . import _cuda_math
from ._convert import instance
from ._index import INT_MAX
from ._interception import overridable
from ._lib import call, local, settings
from ._tensor import Tensor, named_type
from ._types import Defaults, Named, Size
from ._types import device as device_class
from ._types import dtype as dtype_class
from ._types import device, dtype
from .errors import DtypeError, ShapeError


def get_default_dtype() -> dtype:
    """Returns the default floating-point dtype, initially float32."""
    return Defaults.float


class DefaultDtypeError(DtypeError, TypeError):
    """A default dtype must be floating."""


def set_default_dtype(d: dtype) -> None:
    """Sets the default floating-point dtype (float16, bfloat16, float32 or float64) of this thread
    and of threads that first use tt later. The complex default is complex128 with float64, else
    complex64."""
    instance(dtype_class, d, "set_default_dtype", "d")
    if not d.is_floating_point:
        raise DefaultDtypeError(f"set_default_dtype: d is {d}: must be floating")
    configure("tt_ctx_set_default_dtype", c_int32(d.code))
    Defaults.float = d
    Defaults.complex = d.to_complex()


def configure(function: str, *values: Any) -> None:
    """Sets an option of this thread's context and of contexts that are created later."""
    call(function, *values)
    settings[function] = values


def set_default_tensor_type(t: Any) -> None:
    """Sets the default dtype and device to those of a type such as tt.cuda.FloatTensor, or of its
    name."""
    if isinstance(t, str):
        place, t = named_type(t)
    else:
        place = getattr(t, "device_type", "")
    if place == "cuda" and not import_module(".cuda", __package__).is_available():
        raise TypeError(f"set_default_tensor_type: {t} is on CUDA devices, and there is none")
    set_default_dtype(getattr(t, "dtype", t))
    if place:
        set_default_device(None if place == "cpu" else place)


def get_default_device() -> device:
    """Returns the default device of this thread: the CPU, unless set_default_device or a block
    `with tt.device(…):` has changed it."""
    return local.device or device_class("cpu")


def set_default_device(device: Any) -> None:
    """Sets the default device of this thread, where functions that take no tensors, and layers,
    make tensors; None: the CPU. Tensors over other memory, as of from_numpy, stay where they
    are."""
    local.device = None if device is None else device_class(device)


def is_inference_mode_enabled() -> bool:
    """Returns False: inference_mode is no_grad."""
    return False


# ---- how CUDA devices compute; kernels of tt are deterministic and in full precision ----


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Sets whether results have the same bits in every run, as they have at first. With False,
    libraries on CUDA devices may add in another order in each run; all kernels of tt are
    deterministic."""
    _cuda_math.set_deterministic("all", bool(mode))


def are_deterministic_algorithms_enabled() -> bool:
    """Returns whether use_deterministic_algorithms has asked for the same bits in every run.
    Results have them without it; but programs that ask this choose other ways then, slow ones."""
    return _cuda_math.deterministic_switches.get("all", False)


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Returns False: nothing warns instead of being deterministic."""
    return False


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Calls use_deterministic_algorithms(False) for 0 and "default", otherwise with True."""
    _cuda_math.set_deterministic("all", debug_mode not in (0, "default"))


def get_float32_matmul_precision() -> str:
    """Returns what set_float32_matmul_precision was given last; at first "highest"."""
    return _cuda_math.precision


def set_float32_matmul_precision(precision: str) -> None:
    """Sets the precision of products of float32 on CUDA devices: "highest" (at first) is float32,
    with "high" and "medium" cuBLASLt rounds factors to TF32. The CPU computes in float32."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: precision is {precision!r}: must be 'highest', 'high' "
            "or 'medium'"
        )
    _cuda_math.set_precision(precision)


def get_num_interop_threads() -> int:
    """Returns 1: operators run one after another."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Does nothing: operators run one after another."""


def set_flush_denormal(mode: bool) -> bool:
    """Returns False: tt does not change the processor's mode for denormal numbers."""
    return False


def set_warn_always(b: bool) -> None:
    """Does nothing: Python's warnings module decides how often a warning is shown."""


def is_warn_always_enabled() -> bool:
    """Returns False."""
    return False


# ---- small questions ----


@overridable
def numel(input: Tensor) -> int:
    """Returns the number of elements."""
    return instance(Tensor, input, "numel", "input").numel()


@overridable
def is_nonzero(input: Tensor) -> bool:
    """Returns whether the single element differs from 0."""
    return bool(instance(Tensor, input, "is_nonzero", "input"))


@overridable
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Returns whether both have the same shape."""
    return input.is_same_size(other)


@overridable
def is_signed(input: Tensor) -> bool:
    """Returns whether the dtype has negative numbers."""
    return input.is_signed()


def is_inference(input: Tensor) -> bool:
    """Returns False: inference_mode is no_grad."""
    return False


def is_storage(obj: Any) -> bool:
    """Returns whether obj is a storage."""
    from .storage import Storage

    return isinstance(obj, Storage)


def typename(obj: Any) -> str:
    """Returns the qualified name of an object's class, or a tensor's type name."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", None)
    prefix = "" if module in (None, "builtins") else f"{module}."
    return prefix + kind.__qualname__


def broadcast_shapes(*shapes: Any) -> Size:
    """Returns the shape to which tensors of these shapes, or sizes, are broadcast."""
    lists = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    ndim = max(map(len, lists), default=0)
    result = [1] * ndim
    for sizes in lists:
        for i, size in enumerate(sizes, ndim - len(sizes)):
            if size < 0:
                raise ShapeError(f"broadcast_shapes: {size} of {shapes} is negative")
            if size != 1:
                if result[i] not in (1, size):
                    raise ShapeError(f"broadcast_shapes: {shapes} cannot be broadcast")
                result[i] = size
    return Size(result)


def get_device_module(device: Any = None) -> Any:
    """Returns the module of a device type, such as tt.cuda; None: that of the accelerator."""
    name = device_class(device).type if device is not None else "cuda"
    return import_module("." + name, __package__)


PRINT_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
print_options: dict[str, Any] = dict(PRINT_PROFILES["default"], sci_mode=None)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed, in this thread and in threads that first use tt later.

    precision: digits after the point, at most 17. threshold: number of elements above which a
    tensor is summarized. edgeitems: items at each end of a dimension of a summary. linewidth:
    characters per line. profile: "default", "short" or "full", which sets these four first.
    sci_mode: scientific notation; None: decided by the magnitudes of the elements.
    """
    chosen = dict(print_options)
    if profile is not None:
        if profile not in PRINT_PROFILES:
            raise ValueError(
                f"set_printoptions: profile is {profile!r}: must be 'default', 'short' or 'full'"
            )
        chosen.update(PRINT_PROFILES[profile])
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    chosen.update({name: value for name, value in given.items() if value is not None})
    chosen["sci_mode"] = sci_mode
    limited = [int(min(chosen[name], INT_MAX)) for name in given]
    sci = -1 if sci_mode is None else int(sci_mode)
    configure("tt_ctx_set_print_options", *map(c_int64, limited), c_int32(sci))
    print_options.update(chosen)


@overridable
def _assert(condition: Any, message: str) -> None:
    """Raises AssertionError with this message unless condition. fx records the call."""
    assert condition, message


def as_torch() -> ModuleType:
    """Makes `import torch` and `import torch.nn` import tt and its modules. Returns tt.

    `__version__` is then that of PyTorch, `__torch_version__`, which programs compare with the one
    that they need, and dtypes, sizes and types of tensors print as "torch.float32" and so on.
    Raises ImportError if PyTorch has been imported already.
    """
    from ._torch_finder import TorchFinder, add_aliases

    tt: Any = sys.modules[__package__]
    if sys.modules.get("torch", tt) is not tt:
        raise ImportError("as_torch: PyTorch is imported already")
    if not any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchFinder(tt.__torch_version__))
    for info in pkgutil.walk_packages(tt.__path__, "tt."):
        parts = info.name.split(".")
        if parts[-1] == "_C" or not any(part.startswith("_") for part in parts):
            import_module(info.name)
    for name, module in list(sys.modules.items()):
        if name == "tt" or name.startswith("tt."):
            sys.modules["torch" + name[len("tt") :]] = module
    add_aliases()
    sys.modules["functorch"] = import_module("tt._functorch.package")
    tt.torch = tt  # programs write torch.torch, too
    tt.__name__ = Named.library = "torch"
    tt.__version__ = tt.version.__version__ = tt.__torch_version__
    return tt
