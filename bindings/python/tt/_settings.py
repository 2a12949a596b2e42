"""Settings of PyTorch that scripts make, and tt under PyTorch's name."""
from __future__ import annotations

import pkgutil
import sys
import warnings
from importlib import import_module

from ._types import float32
from .errors import UnimplementedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ._types import dtype


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
