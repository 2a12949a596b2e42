"""Reductions, cumulative functions and differences of the array API standard."""
from __future__ import annotations

from builtins import bool as _bool
from typing import Any, Callable

from .. import _ops as ops
from .._tensor import Tensor
from .._types import BOOL, int64
from .._types import dtype as DType
from ._manipulation import axes_of, concat


def reduced(
    function: Callable[..., Any], x: Tensor, axis: Any, keepdims: _bool, **options: Any
) -> Tensor:
    """Applies function over axes. None means all axes, () none: each element by itself."""
    axes = tuple(range(x.ndim)) if axis is None else axes_of(axis)
    if axes:
        return function(x, axes, keepdims, **options)
    return function(x.unsqueeze(0), (0,), False, **options)


def one_by_one(
    function: Callable[..., Any], x: Tensor, axis: Any, keepdims: _bool, **options: Any
) -> Tensor:
    """Applies a function of one axis over several axes."""
    axes = tuple(range(x.ndim)) if axis is None else axes_of(axis)
    if not axes:
        return function(x.unsqueeze(0), 0, False, **options)
    for one in sorted((a % x.ndim for a in axes), reverse=True):
        x = function(x, one, keepdims, **options)
    return x


def widened(x: Tensor, dtype: DType | None) -> DType | None:
    """Returns the dtype of a sum: by default that of x, but int64 for integers."""
    return int64 if dtype is None and x.dtype.kind in "bi" else dtype


def sum(
    x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: _bool = False
) -> Tensor:
    """Returns sums over axes."""
    return reduced(ops.sum, x, axis, keepdims, dtype=widened(x, dtype))


def prod(
    x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: _bool = False
) -> Tensor:
    """Returns products over axes."""
    return one_by_one(ops.prod, x.to(widened(x, dtype) or x.dtype), axis, keepdims)


def mean(x: Tensor, /, *, axis: Any = None, keepdims: _bool = False) -> Tensor:
    """Returns means over axes."""
    return reduced(ops.mean, x, axis, keepdims)


def var(
    x: Tensor, /, *, axis: Any = None, correction: Any = 0.0, keepdims: _bool = False
) -> Tensor:
    """Returns variances over axes: sums of squares divided by n - correction."""
    axes = tuple(range(x.ndim)) if axis is None else axes_of(axis)
    if not axes:
        return x - x  # nan stays nan
    if correction == int(correction):
        return ops.var(x, axes, correction=int(correction), keepdim=keepdims)
    n = 1
    for a in axes:
        n *= x.shape[a]
    return ops.var(x, axes, correction=0, keepdim=keepdims) * (n / (n - correction))


def std(
    x: Tensor, /, *, axis: Any = None, correction: Any = 0.0, keepdims: _bool = False
) -> Tensor:
    """Returns standard deviations over axes."""
    return ops.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Tensor, /, *, axis: Any = None, keepdims: _bool = False) -> Tensor:
    """Returns maxima over axes."""
    return reduced(ops.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Any = None, keepdims: _bool = False) -> Tensor:
    """Returns minima over axes."""
    return reduced(ops.amin, x, axis, keepdims)


def all(x: Tensor, /, *, axis: Any = None, keepdims: _bool = False) -> Tensor:
    """Returns whether all elements along axes differ from 0."""
    return one_by_one(ops.all, x if x.dtype is BOOL else x != 0, axis, keepdims)


def any(x: Tensor, /, *, axis: Any = None, keepdims: _bool = False) -> Tensor:
    """Returns whether any element along axes differs from 0."""
    return one_by_one(ops.any, x if x.dtype is BOOL else x != 0, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: _bool = False) -> Tensor:
    """Returns the number of elements along axes that differ from 0."""
    return reduced(ops.sum, x != 0, axis, keepdims, dtype=int64)


def cumulated(function: Any, x: Tensor, axis: Any, dtype: Any, initial: int | None) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"axis must be given, since x has {x.ndim} dimensions")
        axis = 0
    reduced = function(x, axis, dtype=widened(x, dtype))
    if initial is None:
        return reduced
    shape = list(reduced.shape)
    shape[axis] = 1
    return ops.cat([ops.full(shape, initial, dtype=reduced.dtype, device=x.device), reduced], axis)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: _bool = False,
) -> Tensor:
    """Returns the cumulative sums along an axis. include_initial: starts with a 0."""
    return cumulated(ops.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: _bool = False,
) -> Tensor:
    """Returns the cumulative products along an axis. include_initial: starts with a 1."""
    return cumulated(ops.cumprod, x, axis, dtype, 1 if include_initial else None)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Returns the n-th differences of neighbours along an axis."""
    parts = [part for part in (prepend, x, append) if part is not None]
    return ops.diff(concat(parts, axis=axis), n, axis)
