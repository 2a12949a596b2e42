"""Settings of PyTorch that scripts make, and tt under PyTorch's name."""
from __future__ import annotations

import pkgutil
import sys
import warnings
from importlib import import_module

from ._convert import instance
from ._tensor import Tensor, named_type
from ._types import Size, float32
from ._types import device as device_class
from .errors import ShapeError, UnimplementedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ._types import device, dtype


def get_default_dtype() -> dtype:
    """Returns the dtype of floating-point numbers without one: float32."""
    return float32


def set_default_dtype(d: dtype) -> None:
    """Accepts float32, the default dtype, which cannot be changed. Give functions a dtype
    instead."""
    if d is not float32:
        raise UnimplementedError(
            f"set_default_dtype: d is {d}: the default dtype is always tt.float32; "
            "give dtype= to the functions that make tensors, or convert a model by .to(dtype)"
        )


def set_default_tensor_type(t: Any) -> None:
    """Accepts tt.FloatTensor, and its name: see set_default_dtype."""
    if isinstance(t, str):
        t = named_type(t)[1]
    set_default_dtype(getattr(t, "dtype", t))


def get_default_device() -> device:
    """Returns where tensors are made without device=: the CPU."""
    return device_class("cpu")


def set_default_device(device: Any) -> None:
    """Accepts the CPU, on which tensors are made without device=."""
    if device is not None and device_class(device).type != "cpu":
        raise UnimplementedError(
            f"set_default_device: device is {device}: tensors are made on the CPU by default; "
            "give device= to the functions that make them, or move a model by .to(device)"
        )


def is_inference_mode_enabled() -> bool:
    """Returns False: inference_mode is no_grad."""
    return False


# ---- choices of PyTorch's that tt has made: kernels are deterministic and in full precision ----


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Does nothing: tt's operators are deterministic."""


def are_deterministic_algorithms_enabled() -> bool:
    """Returns True: tt's operators are deterministic."""
    return True


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Does nothing: tt's operators are deterministic."""


def get_float32_matmul_precision() -> str:
    """Returns "highest": products of float32 are computed in float32."""
    return "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Accepts "highest", "high" and "medium": products of float32 are computed in float32."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: precision is {precision!r}: must be 'highest', 'high' "
            "or 'medium'"
        )


def get_num_interop_threads() -> int:
    """Returns 1: operators run one after another."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Does nothing: operators run one after another."""


def set_flush_denormal(mode: bool) -> bool:
    """Returns False: the processor's mode for denormal numbers is left as it is."""
    return False


def set_warn_always(b: bool) -> None:
    """Does nothing: Python's warnings module decides how often a warning is shown."""


def is_warn_always_enabled() -> bool:
    """Returns False."""
    return False


# ---- small questions ----


def numel(input: Tensor) -> int:
    """Returns the number of elements."""
    return instance(Tensor, input, "numel", "input").numel()


def is_nonzero(input: Tensor) -> bool:
    """Returns whether the only element differs from 0."""
    return bool(instance(Tensor, input, "is_nonzero", "input"))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Returns whether both have the same shape."""
    return input.is_same_size(other)


def is_signed(input: Tensor) -> bool:
    """Returns whether the dtype has negative numbers."""
    return input.is_signed()


def is_inference(input: Tensor) -> bool:
    """Returns False: inference_mode is no_grad."""
    return False


def is_storage(obj: Any) -> bool:
    """Returns False: a storage is no object of its own."""
    return False


def typename(obj: Any) -> str:
    """Returns the name of an object's class with its module; of a tensor that of its type."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", None)
    prefix = "" if module in (None, "builtins") else f"{module}."
    return prefix + kind.__qualname__


def broadcast_shapes(*shapes: Any) -> Size:
    """Returns the shape that tensors of these shapes, or of these sizes, are broadcast to."""
    lists = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    ndim = max(map(len, lists), default=0)
    found = [1] * ndim
    for sizes in lists:
        for i, size in enumerate(sizes, ndim - len(sizes)):
            if size < 0:
                raise ShapeError(f"broadcast_shapes: {size} of {shapes} is negative")
            if size != 1:
                if found[i] not in (1, size):
                    raise ShapeError(f"broadcast_shapes: {shapes} cannot be broadcast")
                found[i] = size
    return Size(found)


def get_device_module(device: Any = None) -> Any:
    """Returns tt.cuda or tt.mps, …: the module of a device type; None: that of the
    accelerator."""
    name = device_class(device).type if device is not None else "cuda"
    return import_module("." + name, __package__)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Warns if an option differs from PyTorch's default, which is how tt always prints."""
    given = {
        "precision": (precision, 4),
        "threshold": (threshold, 1000),
        "edgeitems": (edgeitems, 3),
        "linewidth": (linewidth, 80),
        "profile": (profile, "default"),
        "sci_mode": (sci_mode, None),
    }
    ignored = [name for name, (value, usual) in given.items() if value not in (None, usual)]
    if ignored:
        warnings.warn(
            f"set_printoptions: tt ignores {', '.join(ignored)}: tensors are printed as by "
            "PyTorch's default options",
            stacklevel=2,
        )


def as_torch() -> ModuleType:
    """Makes `import torch` and imports of its modules, such as torch.nn, give tt's. Returns tt.

    Raises ImportError if PyTorch has been imported already.
    """
    tt: Any = sys.modules[__package__]
    if sys.modules.get("torch", tt) is not tt:
        raise ImportError("as_torch: PyTorch is imported already")
    for found in pkgutil.walk_packages(tt.__path__, "tt."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            import_module(found.name)
    for name, module in list(sys.modules.items()):
        if name == "tt" or name.startswith("tt."):
            sys.modules["torch" + name[len("tt") :]] = module
    return tt
