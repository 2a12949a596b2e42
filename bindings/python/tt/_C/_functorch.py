"""Questions about transformed tensors by the names of torch._C._functorch, which packages import.

The tensors of a transform are plain ones in tt: C tracks their dimensions and levels. So none can
be made outside of vmap, grad and the like.
"""
from __future__ import annotations

from typing import Any

from .._absent import absent_function
from .._containers import _add_batch_dim as _add_batch_dim
from .._containers import _remove_batch_dim as _remove_batch_dim
from .._depth import depth

INSIDE = "the dimensions of samples belong to tt.vmap, which alone adds and removes them"
_vmap_increment_nesting = absent_function("_C._functorch._vmap_increment_nesting", INSIDE)
_vmap_decrement_nesting = absent_function("_C._functorch._vmap_decrement_nesting", INSIDE)


def is_batchedtensor(tensor: Any) -> bool:
    """Returns whether a call of vmap is running on this thread: any tensor may be batched then."""
    return depth.vmap > 0


def maybe_current_level() -> int | None:
    """Returns how many calls of transforms are running on this thread, or None."""
    return depth.vmap + depth.functions or None


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Returns whether a transform is running on this thread."""
    return maybe_current_level() is not None


def plain(tensor: Any) -> bool:
    """Returns False: tt has no tensors of this kind."""
    return False


is_legacy_batchedtensor = is_gradtrackingtensor = is_functionaltensor = plain


def get_unwrapped(tensor: Any) -> Any:
    """Returns the tensor: it has no wrapper."""
    return tensor
