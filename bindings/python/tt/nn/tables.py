"""Embedding look-ups of torch.nn.functional."""
from __future__ import annotations

import warnings

from .. import _ops
from .._interception import overridable
from .._tensor import Tensor
from ..autograd import is_grad_enabled, no_grad
from ..errors import InvalidArgumentError


def _renormalize(input: Tensor, weight: Tensor, max_norm: float | None, norm_type: float) -> None:
    """Renormalizes the rows at input in place."""
    if max_norm is not None:
        with no_grad():
            _ops.embedding_renorm_(weight, input, max_norm, norm_type)


def _has_sparse_grad(name: str, weight: Tensor, scale_grad_by_freq: bool) -> bool:
    """Returns whether weight is a leaf that receives a gradient. That of other tensors is dense,
    and that of leaves which a transform of tt.func has made."""
    if not (weight.requires_grad and weight.is_leaf and is_grad_enabled()):
        return False
    from ..func import depth

    if depth.functions:
        return False
    if scale_grad_by_freq:
        raise InvalidArgumentError(
            f"{name}: scale_grad_by_freq is True: must be False where sparse is True"
        )
    return True


@overridable
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
    sparse: backward() adds a SparseTensor of the rows at input to the .grad of weight, a leaf; the
        optimizers SparseAdam, SGD and Adagrad take it. autograd.grad returns dense gradients
    """
    _renormalize(input, weight, max_norm, norm_type)
    if sparse and _has_sparse_grad("embedding", weight, scale_grad_by_freq):
        from .. import _sparse_grad

        return _sparse_grad.embedding(input, weight, padding_idx)
    return _ops.embedding(input, weight, padding_idx, scale_grad_by_freq)


@overridable
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
    sparse: as in embedding; not for mode "max"
    per_sample_weights: factor of each row, in the shape of input; for mode "sum"
    include_last_offset: the last offset is the end of the last bag
    padding_idx: row that is ignored; negative values count from the end

    As in PyTorch, input and weight may be exchanged, with a warning.
    """
    if input.is_floating_point() and not weight.is_floating_point():
        warnings.warn("embedding_bag: input is floating: input and weight are exchanged")
        input, weight = weight, input
    _renormalize(input, weight, max_norm, norm_type)
    if sparse and _has_sparse_grad("embedding_bag", weight, scale_grad_by_freq):
        if mode == "max":
            raise InvalidArgumentError(
                "embedding_bag: mode is 'max': must be 'sum' or 'mean' where sparse is True"
            )
        from .. import _sparse_grad

        weight, input, padding_idx = _sparse_grad.table_of_rows(input, weight, padding_idx)
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
