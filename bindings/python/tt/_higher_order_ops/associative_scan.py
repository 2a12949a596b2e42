"""associative_scan, with the API of torch._higher_order_ops.associative_scan."""
from __future__ import annotations

from typing import Any, Callable

from .. import _ops as ops
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Returns combine_fn over all prefixes along dim; reverse: over all suffixes.

    combine_fn(a, b) is associative. It is called with slices of many elements, log2(n) times. xs: a
    tensor, or a structure of tensors, which combine_fn takes and returns. combine_mode is ignored.
    """
    parts, spec = tree_flatten(xs)
    if reverse:
        parts = [x.flip(dim) for x in parts]
    n = parts[0].shape[dim]
    step = 1
    while step < n:
        before = tree_unflatten([x.narrow(dim, 0, n - step) for x in parts], spec)
        after = tree_unflatten([x.narrow(dim, step, n - step) for x in parts], spec)
        combined = tree_flatten(combine_fn(before, after))[0]
        first = [x.narrow(dim, 0, step) for x in parts]
        parts = [ops.cat([a, b], dim) for a, b in zip(first, combined)]
        step *= 2
    if reverse:
        parts = [x.flip(dim) for x in parts]
    return tree_unflatten(parts, spec)


def __dir__() -> list[str]:
    return __all__
