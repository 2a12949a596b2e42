"""Functions of samples with arguments that a declaration cannot express."""
from __future__ import annotations

from typing import NamedTuple, Sequence

from . import _ops
from ._interception import overridable
from ._tensor import Tensor
from .errors import InvalidArgumentError

__all__ = ["gradient", "histogram"]


class Histogram(NamedTuple):
    """The results of histogram."""

    hist: Tensor
    bin_edges: Tensor

    def __repr__(self) -> str:
        return f"tt.return_types.histogram(\nhist={self.hist!r},\nbin_edges={self.bin_edges!r})"


@overridable
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Histogram:
    """Counts the elements in each bin, or sums their weights. Returns (hist, bin_edges).

    bins: the number of bins of equal width, or ascending edges. range: for a number of bins, the
    lower and the upper end; None for the smallest and the largest element. density: normalizes to
    an integral of 1. out: two tensors that receive the results.
    """
    if isinstance(bins, Tensor):
        if range is not None:
            raise InvalidArgumentError(
                "histogram: range is given: the edges in bins say it already"
            )
        return Histogram(*_ops.histogram_edges(input, bins, weight, density, out=out))
    lower, upper = range if range is not None else (None, None)
    return Histogram(
        *_ops.histogram(
            input, bins, lower=lower, upper=upper, weight=weight, density=density, out=out
        )
    )


@overridable
def gradient(
    input: Tensor,
    *,
    spacing: float | Sequence[float] | Sequence[Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Estimates the derivative of a function along each dimension from its values.

    spacing: the distance between neighbours, or one per dimension, or 1-D tensors of points. dim:
    the dimensions; None for all. edge_order: 1 or 2, the order of the differences at the borders.
    """
    if dim is None:
        dims = list(range(input.ndim))
    else:
        dims = [dim] if isinstance(dim, int) else list(dim)
    if not isinstance(spacing, (list, tuple)):
        step = 1 if spacing is None else spacing
        return tuple(_ops.gradient(input, dims, edge_order, spacing=step)) if dims else ()
    if len(spacing) != len(dims):
        raise InvalidArgumentError(
            f"gradient: spacing has {len(spacing)} entries, dim {len(dims)}: must be equal"
        )
    if all(isinstance(s, Tensor) and s.ndim for s in spacing):
        return tuple(_ops.gradient_points(input, list(spacing), dims, edge_order))
    return tuple(_ops.gradient(input, [d], edge_order, spacing=s)[0] for s, d in zip(spacing, dims))
