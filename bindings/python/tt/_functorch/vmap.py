"""Names of torch._functorch.vmap that packages import. tt.vmap does not use them, so it does not
notice what a package puts in their place."""
from __future__ import annotations

from typing import Any, Callable

from .._absent import absent_function
from .._C._functorch import INSIDE
from .._C._functorch import _add_batch_dim as _add_batch_dim
from .._C._functorch import _remove_batch_dim as _remove_batch_dim
from .._C._functorch import is_batchedtensor as is_batchedtensor
from .._containers import _maybe_remove_batch_dim as _maybe_remove_batch_dim
from .._tensor import Tensor as Tensor
from ..func import vmap as vmap_impl
from ..utils._pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from ..utils._pytree import tree_flatten as tree_flatten
from ..utils._pytree import tree_map_ as tree_map_
from ..utils._pytree import tree_unflatten as tree_unflatten

__all__ = ["is_batchedtensor", "vmap_impl"]
_create_batched_inputs = absent_function("_functorch.vmap._create_batched_inputs", INSIDE)
_process_batched_inputs = absent_function("_functorch.vmap._process_batched_inputs", INSIDE)
_unwrap_batched = absent_function("_functorch.vmap._unwrap_batched", INSIDE)


def _get_name(func: Callable[..., Any]) -> str:
    """Returns the name of a function, or what it prints as."""
    return str(getattr(func, "__name__", func))
