"""map, with the API of torch._higher_order_ops.map."""
from __future__ import annotations

from typing import Any, Callable

from .. import _ops as ops
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Returns the stacked results of f(x, *args) for the slices x of xs along the first dimension.
    xs and the results of f are tensors or structures of tensors."""
    parts, spec = tree_flatten(xs)
    n = parts[0].shape[0]
    for x in parts:
        if x.shape[0] != n:
            raise ValueError(f"map: leading dimensions are {n} and {x.shape[0]}: must be equal")
    if n == 0:
        raise ValueError("map: xs has no slices: must have at least 1")
    results = [f(tree_unflatten([x[i] for x in parts], spec), *args) for i in range(n)]
    return tree_map(lambda *found: ops.stack(found), results[0], *results[1:])
