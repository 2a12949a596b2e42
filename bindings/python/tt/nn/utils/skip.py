"""skip_init of torch.nn.utils."""
from __future__ import annotations

import inspect
from typing import Any, TypeVar

from ..layer import preserve_rng_state
from ..module import Module

M = TypeVar("M", bound=Module)


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """Returns module_cls(*args, **kwargs) with unspecified parameter values, for a caller that sets
    them all. The generator's state is unchanged.

    The class must take an argument device, as those of tt.nn with parameters do.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with preserve_rng_state():
        return module_cls(*args, **kwargs)
