"""Names of torch._C that classes with a __torch_function__ use."""
from __future__ import annotations

from ._interception import DisableTorchFunction as DisableTorchFunction
from ._interception import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ._interception import disabled_torch_function as _disabled_torch_function_impl
from ._tensor import Tensor as _TensorBase
from .overrides import _is_torch_function_mode_enabled
from .overrides import _len_torch_function_stack
from .overrides import has_torch_function as _has_torch_function
from .random import Generator as Generator

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Generator",
    "_TensorBase",
    "_disabled_torch_function_impl",
    "_has_torch_function",
    "_is_torch_function_mode_enabled",
    "_len_torch_function_stack",
]
