"""Functions of the torch namespace that are composed of operators: histograms of points, segments,
products with Householder reflections, memory layouts. _torch_functions finds them."""
from __future__ import annotations

import math
from builtins import range as range_of
from typing import Any, NamedTuple, Sequence

from . import _ops as ops
from ._interception import overridable
from ._tensor import Tensor
from ._types import int64
from ._types import dtype as Dtype
from .errors import ShapeError

# ---- histograms of points ----


class histogramdd_result(NamedTuple):
    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def edges_of(points: Tensor, bins: Sequence[int], range: Sequence[float] | None) -> list[Tensor]:
    """Returns the edges of bins of equal width: over range, or from the least to the greatest."""
    if range is not None:
        ends = [(float(range[2 * d]), float(range[2 * d + 1])) for d in range_of(len(bins))]
    elif points.shape[0]:
        ends = list(zip(points.amin(0).tolist(), points.amax(0).tolist()))
    else:
        ends = [(0.0, 0.0)] * len(bins)
    edges = []
    for n, (low, high) in zip(bins, ends):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"histogramdd: range is [{low}, {high}]: must be finite")
        if low > high:
            raise ValueError(f"histogramdd: range is [{low}, {high}]: must not fall")
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(ops.linspace(low, high, n + 1, dtype=points.dtype, device=points.device))
    return edges


@overridable
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> histogramdd_result:
    """Counts the points of input, whose coordinates are in its last dimension, in a grid of bins.

    bins: numbers of bins of equal width, or the edges of the bins of each dimension.
    range: leftmost and rightmost edge of each dimension, one after another; default: the least and
    the greatest coordinate. Points outside are not counted; the last bin includes both edges.
    weight: what each point counts for, of the shape of input without its last dimension.
    density: whether the result is divided so that its integral over the grid is 1.
    """
    if input.ndim < 2:
        raise ShapeError(f"histogramdd: input has {input.ndim} dimension(s): must have at least 2")
    if not input.dtype.is_floating_point:
        raise TypeError(f"histogramdd: input has dtype {input.dtype}: must be floating point")
    dims = input.shape[-1]
    points = input.detach().reshape(-1, dims)
    given: list[Any] = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(given) != dims:
        raise ValueError(f"histogramdd: bins has {len(given)} entries: must have {dims}")
    if range is not None and len(range) != 2 * dims:
        raise ValueError(f"histogramdd: range has {len(range)} numbers: must have {2 * dims}")
    if weight is not None and weight.shape != input.shape[:-1]:
        raise ShapeError(
            f"histogramdd: weight has shape {tuple(weight.shape)}: must be "
            f"{tuple(input.shape[:-1])}"
        )
    if any(isinstance(entry, Tensor) for entry in given):
        edges = given
    else:
        if any(n < 1 for n in given):
            raise ValueError(f"histogramdd: bins is {given}: must be positive")
        edges = edges_of(points, given, range)
    inside: Any = True
    place = ops.zeros(points.shape[0], dtype=int64, device=points.device)
    for d, edge in enumerate(edges):
        n = edge.numel() - 1
        x = points[:, d].contiguous()
        inside = inside & (x >= edge[0]) & (x <= edge[-1])
        bin = ops.searchsorted(edge, x, right=True) - 1
        place = place * n + bin.clamp(0, n - 1)
    shape = [edge.numel() - 1 for edge in edges]
    amount = inside.to(points.dtype)
    if weight is not None:
        amount = amount.where(~inside, weight.detach().reshape(-1).to(points.dtype))
    hist = ops.zeros(math.prod(shape), dtype=points.dtype, device=points.device)
    hist = hist.index_add(0, place, amount).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1] + [1] * (dims - d - 1))
    return histogramdd_result(hist, tuple(edges))


# ---- segments ----

EMPTY = {"sum": 0.0, "mean": 0.0, "max": -math.inf, "min": math.inf, "prod": 1.0}
REDUCTIONS = {"max": "amax", "min": "amin", "prod": "prod"}  # of index_reduce


@overridable
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduces consecutive segments of data along axis: sum, mean, max, min or prod.

    lengths: lengths of the segments, whose shape is that of data up to axis with their number
    last; or offsets, the first positions of the segments and the end. unsafe: lengths are not
    checked. initial: value at the start of each reduction, and the result of empty segments.
    """
    if reduce not in EMPTY:
        raise ValueError(f"segment_reduce: reduce is {reduce!r}: must be one of {list(EMPTY)}")
    if indices is not None:
        raise NotImplementedError("segment_reduce: indices is not supported: give lengths")
    if offsets is not None:
        lengths = offsets.diff()
    if lengths is None:
        raise ValueError("segment_reduce: lengths and offsets are None: one must be given")
    axis = axis % data.ndim
    if lengths.shape[:-1] != data.shape[:axis]:
        raise ShapeError(
            f"segment_reduce: lengths has shape {tuple(lengths.shape)}: must be that of data up to "
            f"axis {axis}, {tuple(data.shape[:axis])}, and the number of segments"
        )
    size = data.shape[axis]
    if not unsafe:
        if (lengths < 0).any():
            raise ValueError("segment_reduce: lengths has negative elements")
        if (lengths.sum(-1) != size).any():
            raise ValueError(f"segment_reduce: lengths must add up to {size}, data's size at axis")
    count = lengths.shape[-1]
    rows = data.reshape(math.prod(data.shape[: axis + 1]), *data.shape[axis + 1 :])
    flat = lengths.reshape(-1)
    index = ops.arange(flat.numel(), device=data.device).repeat_interleave(flat.to(int64))
    start = EMPTY[reduce] if initial is None else float(initial)
    result = rows.new_full((flat.numel(), *rows.shape[1:]), start)
    if reduce in ("sum", "mean"):
        result = result.index_add(0, index, rows)
    else:
        how: Any = REDUCTIONS[reduce]
        result = result.index_reduce(0, index, rows, how)
    if reduce == "mean":
        n = flat.reshape([-1] + [1] * (rows.ndim - 1)).to(data.dtype)
        empty = math.nan if initial is None else start
        result = ops.where(n > 0, result / n.clamp(min=1), result.new_full((), empty))
    return result.reshape(*data.shape[:axis], count, *data.shape[axis + 1 :])


# ---- products ----


@overridable
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Returns LU, pivots and, with get_infos, infos: the former name of linalg.lu_factor and
    lu_factor_ex."""
    if get_infos:
        return tuple(ops.linalg_lu_factor_ex(A, pivot))
    return tuple(ops.linalg_lu_factor(A, pivot))


@overridable
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Multiplies other by the orthogonal matrix Q of geqrf: Q @ other, or other @ Q without left.

    input, tau: what geqrf returns. transpose: multiplies by Q's conjugate transpose.
    """
    dim = -2 if left else -1
    size = other.shape[dim] if other.ndim >= 2 else -1
    if input.ndim < 2 or other.ndim < 2 or input.shape[-2] != size:
        raise ShapeError(
            f"ormqr: input has shape {tuple(input.shape)}, other {tuple(other.shape)}: input's "
            f"rows must be as many as other's {'rows' if left else 'columns'}"
        )
    count = min(size, input.shape[-1])
    if tau.shape[-1:] != (count,):
        raise ShapeError(
            f"ormqr: tau has shape {tuple(tau.shape)}: its last dimension must be {count}, the "
            "number of reflections in input"
        )
    pad = ops.find("nn.functional", "pad")
    full = pad(input[..., :count], (0, size - count))
    q = ops.linalg_householder_product(full, tau)
    if transpose:
        q = q.mH
    result: Tensor = q @ other if left else other @ q
    return result


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolves sequences of shape (time, batch, channels) with a weight of shape (width, input
    channels, output channels)."""
    conv1d = ops.find("nn.functional", "conv1d")
    result: Tensor = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return result.permute(2, 0, 1)


# ---- memory ----


def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: Dtype | None = None,
    **options: Any,
) -> Tensor:
    """Returns an uninitialized tensor without gaps whose dimensions are in memory in the order
    physical_layout, the outermost first."""
    order = [int(d) for d in physical_layout]
    if sorted(order) != list(range_of(len(size))):
        raise ValueError(
            f"empty_permuted: physical_layout is {order}: must have each of the {len(size)} "
            "dimensions once"
        )
    sizes = [size[d] for d in order]
    back = sorted(range_of(len(order)), key=order.__getitem__)
    return ops.empty(sizes, dtype=dtype, **options).permute(back)


def from_file(
    filename: str, shared: bool = False, size: int = 0, *, dtype: Dtype | None = None
) -> Tensor:
    """Returns a 1-D tensor of size elements over the bytes of a file; shared: writes to the tensor
    write to the file."""
    from ._create import asarray
    from ._settings import get_default_dtype
    from .storage import UntypedStorage

    kind = dtype or get_default_dtype()
    storage = UntypedStorage.from_file(filename, shared, size * kind.itemsize)
    return asarray(storage, dtype=kind)
