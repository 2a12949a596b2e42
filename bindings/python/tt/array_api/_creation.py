"""Creation functions of the array API standard."""
from __future__ import annotations

from typing import Any

from .. import _create
from .. import _ops as ops
from .._tensor import Tensor
from .._types import device as Device
from .._types import dtype as DType


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Returns start, start + step, …, below stop. arange(stop) begins with 0."""
    if stop is None:
        start, stop = 0, start
    if step > 0 and stop <= start or step < 0 and stop >= start:
        if dtype is None:
            whole = all(isinstance(x, int) for x in (start, stop, step))
            return ops.empty(0, dtype=ops.full((0,), 0 if whole else 0.0).dtype, device=device)
        return ops.empty(0, dtype=dtype, device=device)
    return ops.arange(start, stop, step, dtype=dtype, device=device)


def asarray(
    obj: Any,
    /,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Returns obj as an array. copy=True: always a copy; copy=False: never, or a ValueError."""
    return _create.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Any, *, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Returns an uninitialised array."""
    return ops.empty(sizes(shape), dtype=dtype, device=device)


def sizes(shape: Any) -> Any:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty_like(
    x: Tensor, /, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Returns an uninitialised array of the shape of x."""
    return ops.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Returns a matrix with ones on its k-th diagonal and zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    result = ops.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        ops.diagonal(result, offset=k).fill_(1)
    return result


def full(
    shape: Any, fill_value: Any, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Returns an array of one value."""
    return ops.full(sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: Any, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Returns an array of one value, of the shape of x."""
    return ops.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Returns num evenly spaced numbers from start to stop; endpoint=False leaves stop out."""
    if endpoint:
        return ops.linspace(start, stop, num, dtype=dtype, device=device)
    return ops.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Returns the coordinates of a grid from those along its axes."""
    return list(ops.meshgrid(*arrays, indexing=indexing)) if arrays else []


def ones(shape: Any, *, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Returns an array of ones."""
    return ops.ones(sizes(shape), dtype=dtype, device=device)


def ones_like(
    x: Tensor, /, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Returns ones in the shape of x."""
    return ops.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Returns x with zeros above the k-th diagonal of its last two dimensions."""
    return ops.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Returns x with zeros below the k-th diagonal of its last two dimensions."""
    return ops.triu(x, k)


def zeros(shape: Any, *, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Returns an array of zeros."""
    return ops.zeros(sizes(shape), dtype=dtype, device=device)


def zeros_like(
    x: Tensor, /, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Returns zeros in the shape of x."""
    return ops.zeros_like(x, dtype=dtype, device=device)
