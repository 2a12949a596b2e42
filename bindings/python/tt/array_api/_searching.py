"""Searching, sorting and sets of the array API standard."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from .. import _ops as ops
from .._tensor import Tensor
from ._dtypes import promoted

UniqueAll = namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the index of the first maximum along an axis; None: of the flattened array."""
    return extreme(ops.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns the index of the first minimum along an axis; None: of the flattened array."""
    return extreme(ops.argmin, x, axis, keepdims)


def extreme(function: Any, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is not None:
        return function(x, axis, keepdims)
    result = function(x.reshape(-1), 0)
    return result.view((1,) * x.ndim) if keepdims else result


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Returns the indices that sort x along an axis."""
    return ops.sort(x, dim=axis, descending=descending, stable=stable)[1]


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns x sorted along an axis."""
    return ops.sort(x, dim=axis, descending=descending, stable=stable)[0]


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Returns the indices, one array for each axis, of the elements that differ from 0."""
    if not x.ndim:
        raise ValueError("nonzero: x is 0-dim: must have at least 1 dimension")
    return tuple(ops.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Returns the positions at which the elements of x2 would be inserted into the sorted array
    x1."""
    a, b = promoted(x1, x2)
    return ops.searchsorted(a, b, side=side, sorter=sorter)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Returns the elements of x1 where condition is true, else those of x2."""
    return ops.where(condition, *promoted(x1, x2))


def unique_all(x: Tensor, /) -> UniqueAll:
    """Returns the unique values, their first indices, the inverse indices and the counts."""
    values, inverse, counts = ops.unique(x.reshape(-1), return_inverse=True, return_counts=True)
    order = ops.sort(inverse, stable=True)[1]
    indices = order[ops.cumsum(counts, 0) - counts]
    return UniqueAll(values, indices, inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Returns the unique values and their counts."""
    return UniqueCounts(*ops.unique(x.reshape(-1), return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Returns the unique values and the index of each element's value among them."""
    values, inverse = ops.unique(x.reshape(-1), return_inverse=True)
    return UniqueInverse(values, inverse.reshape(x.shape))


def unique_values(x: Tensor, /) -> Tensor:
    """Returns the unique values."""
    return ops.unique(x.reshape(-1))
