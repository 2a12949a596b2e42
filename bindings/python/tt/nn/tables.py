"""Embedding look-ups of torch.nn.functional."""
from __future__ import annotations

from .. import _ops
from ..autograd import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._tensor import Tensor


def _prepare(
    name: str, input: Tensor, weight: Tensor, max_norm: float | None, norm_type: float, sparse: bool
) -> None:
    """Renormalizes the rows at input in place."""
    if sparse:
        raise NotImplementedError(f"{name}: sparse is True: gradients are dense")
    if max_norm is not None:
        with no_grad():
            _ops.embedding_renorm_(weight, input, max_norm, norm_type)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Looks up the rows of weight at input.

    input: integers of any shape, in [0, rows)
    weight: (rows, features)
    padding_idx: row that receives no gradient; negative values count from the end
    max_norm: rows at input with a larger norm are first scaled to it, in place in weight
    norm_type: order of that norm
    scale_grad_by_freq: divides the gradient of a row by the number of its indices
    sparse: must be False
    """
    _prepare("embedding", input, weight, max_norm, norm_type, sparse)
    return _ops.embedding(input, weight, padding_idx, scale_grad_by_freq)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Looks up the rows of weight at input and reduces those of each bag.

    input: integers in [0, rows): (bags, n) or, with offsets, (n)
    weight: (rows, features)
    offsets: where each bag begins in input, ascending from 0
    max_norm: rows at input with a larger norm are first scaled to it, in place in weight
    norm_type: order of that norm
    scale_grad_by_freq: divides the gradient of a row by the number of its indices
    mode: "sum", "mean" or "max"
    sparse: must be False
    per_sample_weights: factor of each row, in the shape of input; for mode "sum"
    include_last_offset: the last offset is the end of the last bag
    padding_idx: row that is ignored; negative values count from the end
    """
    _prepare("embedding_bag", input, weight, max_norm, norm_type, sparse)
    return _ops.embedding_bag(
        weight,
        input,
        offsets,
        mode,
        per_sample_weights,
        scale_grad_by_freq,
        include_last_offset,
        padding_idx,
    )
