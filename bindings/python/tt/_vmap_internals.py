"""vmap before torch.func, with the names of torch._vmap_internals."""
from __future__ import annotations

from typing import Any, Callable

from .func import vmap

__all__ = ["vmap"]


def _vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """Returns vmap(func, in_dims, out_dims). Results that are None are always passed through."""
    return vmap(func, in_dims, out_dims)
