"""Names of torch.utils._python_dispatch. tt's operators have no __torch_dispatch__."""
from __future__ import annotations

from typing import Any

from .._absent import absent_class

WHY = "operators of tt have no __torch_dispatch__; TorchFunctionMode sees calls of functions"
TorchDispatchMode = absent_class("utils._python_dispatch.TorchDispatchMode", WHY)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Returns False: no tensor wraps others below its functions."""
    return False


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Returns False."""
    return False
