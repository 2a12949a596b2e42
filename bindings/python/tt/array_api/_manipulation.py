"""Manipulation and indexing functions of the array API standard."""
from __future__ import annotations

from typing import Any

from .. import _ops as ops
from .._settings import broadcast_shapes
from .._tensor import Tensor
from .._types import int64
from ._dtypes import promoted


def axes_of(axis: Any) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Returns views of the arrays in their common shape."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [x.expand(shape) for x in arrays]


def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """Returns a view of x in another shape."""
    return ops.broadcast_to(x, tuple(shape))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Concatenates the arrays along an axis; axis=None: flattens them first."""
    items = promoted(*arrays)
    if axis is None:
        return ops.cat([x.reshape(-1) for x in items])
    return ops.cat(items, axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """Returns a view with a new axis of size 1."""
    return ops.unsqueeze(x, axis)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Returns x with the elements along axes in reverse order; None: along all axes."""
    axes = tuple(range(x.ndim)) if axis is None else axes_of(axis)
    return ops.flip(x, axes) if axes else x.clone()


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Returns a view with axes at other positions."""
    return ops.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: Any) -> Tensor:
    """Returns a view with the axes in another order."""
    return ops.permute(x, tuple(axes))


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Returns x with each element along an axis repeated; axis=None: of the flattened array."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, Tensor) and not repeats.ndim:
        repeats = int(repeats)
    if isinstance(repeats, Tensor):
        repeats = repeats.to(int64)
    return ops.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """Returns x in another shape. copy=True: always a copy; copy=False: a view, or a
    ValueError."""
    shape = tuple(shape)
    if copy:
        return ops.reshape(x.clone(), shape)
    return x.view(shape) if copy is False else ops.reshape(x, shape)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Shifts the elements along axes, cyclically."""
    if axis is None:
        return ops.roll(x, shift)
    axes = axes_of(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return ops.roll(x, shifts, axes)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Returns a view without these axes, whose size must be 1."""
    axes = axes_of(axis)
    for one in axes:
        if not -x.ndim <= one < x.ndim:
            raise IndexError(f"squeeze: axis is {one}, x has {x.ndim} dimensions")
        if x.shape[one] != 1:
            raise ValueError(f"squeeze: axis {one} of x has size {x.shape[one]}: must be 1")
    gone = {one % x.ndim for one in axes}
    return x.view([size for i, size in enumerate(x.shape) if i not in gone])


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Stacks the arrays along a new axis."""
    return ops.stack(promoted(*arrays), axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Returns the elements at indices along an axis, which is optional for 1-d arrays."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis must be given, since x has {x.ndim} dimensions")
        axis = 0
    axis %= max(x.ndim, 1)
    n = x.shape[axis]
    places = ops.where(indices < 0, indices + n, indices)
    selected = ops.index_select(x, axis, places.reshape(-1))
    return selected.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns the element at each index along an axis."""
    n = x.shape[axis]
    return ops.take_along_dim(x, ops.where(indices < 0, indices + n, indices), axis)


def tile(x: Tensor, repetitions: Any, /) -> Tensor:
    """Returns copies of x side by side."""
    return ops.tile(x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Returns the slices along an axis."""
    return tuple(ops.unbind(x, axis))
