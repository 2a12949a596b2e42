"""Primitives of PyTorch's layers under torch's names, which return the statistics of norms and the
positions of bags, too. _torch_functions finds them."""
from __future__ import annotations

from typing import Any, Sequence

from . import _ops as ops
from ._tensor import Tensor
from ._types import dtype, float32, float64, int64
from .autograd import no_grad

BAGS = ("sum", "mean", "max")  # embedding_bag's modes by torch's numbers


def functional(name: str) -> Any:
    """Returns a function of nn.functional."""
    return ops.find("nn.functional", name)


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Calls conv1d, conv2d or conv3d of nn.functional, by the dimensions of weight, or their
    transposes."""
    n = weight.ndim - 2
    result: Tensor
    if transposed:
        result = functional(f"conv_transpose{n}d")(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    else:
        result = functional(f"conv{n}d")(input, weight, bias, stride, padding, dilation, groups)
    return result


def dtype_of_statistics(input: Tensor, *parameters: Tensor | None) -> dtype:
    """Returns the dtype of the first parameter that is given, else that of the input."""
    given = [p for p in parameters if p is not None]
    return given[0].dtype if given else input.dtype


def statistics(
    input: Tensor, dims: Sequence[int], keepdim: bool, eps: float, result: dtype
) -> list[Tensor]:
    """Returns the means over dims, and the reciprocals of the standard deviations, of the dtype
    result."""
    with no_grad():
        wide = input.detach()
        if wide.dtype.itemsize < 4:
            wide = wide.to(float32)
        var, mean = ops.find("tt", "var_mean")(wide, dims, correction=0, keepdim=keepdim)
        return [mean.to(result), (var + eps).rsqrt().to(result)]


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns batch_norm of nn.functional, and in training the means of the batch and the
    reciprocals of its standard deviations, else empty tensors."""
    result = functional("batch_norm")(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    kind = dtype_of_statistics(input, weight, bias, running_mean, running_var)
    if not training:
        empty = ops.empty((0,), dtype=kind, device=input.device)
        return result, empty, empty.clone()
    dims = [d for d in range(input.ndim) if d != 1]
    mean, rstd = statistics(input, dims, False, eps, kind)
    return result, mean, rstd


def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns layer_norm, the means, and the reciprocals of the standard deviations."""
    result = functional("layer_norm")(input, normalized_shape, weight, bias, eps)
    kind = dtype_of_statistics(input, weight, bias)
    mean, rstd = statistics(input, list(range(-len(normalized_shape), 0)), True, eps, kind)
    return result, mean, rstd


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns group_norm, and of each group of N samples with C * HxW elements the mean and the
    reciprocal of the standard deviation."""
    result = functional("group_norm")(input, group, weight, bias, eps)
    groups = input.reshape(N, group, C // group * HxW)
    mean, rstd = statistics(groups, [2], False, eps, dtype_of_statistics(input, weight, bias))
    return result, mean, rstd


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Zeroes elements with probability p and scales the others, unless train is False. Returns the
    result, and which elements remain."""
    wide = float64 if input.dtype.name == "float64" else float32
    kept = ops.find("tt", "ones_like")(input, dtype=wide)
    if train is False or p == 0:
        return input.clone(), kept.bool()
    kept = functional("dropout")(kept, p, True)
    return input * kept.to(input.dtype), kept != 0


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Calls nn.functional.channel_shuffle."""
    result: Tensor = functional("channel_shuffle")(input, groups)
    return result


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns embedding_bag of nn.functional with a numeric mode (0 sum, 1 mean, 2 max), and what
    PyTorch's backward reads: the bag of each index, the number of indices of each bag that are not
    padding_idx, and these numbers again, for max the row of each element instead. They have the
    wider dtype of indices and offsets.

    As in PyTorch, a sum leaves the numbers 0, one for each offset, and mostly has no bags.
    """
    if mode not in (0, 1, 2):
        raise ValueError(f"embedding_bag: mode is {mode}: must be 0, 1 or 2")
    result = functional("embedding_bag")(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=BAGS[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    kind = offsets.dtype if indices.dtype.itemsize < offsets.dtype.itemsize else indices.dtype
    starts = (offsets[:-1] if include_last_offset else offsets).to(int64).contiguous()
    places = ops.arange(len(indices), device=indices.device)
    bags = ops.find("tt", "searchsorted")(starts, places, right=True) - 1
    padding = -1  # no index
    if padding_idx is not None:
        padding = padding_idx + len(weight) if padding_idx < 0 else padding_idx
    counted = indices != padding
    sizes = ops.zeros((len(starts),), dtype=int64, device=indices.device)
    sizes = sizes.index_add(0, bags, counted.to(int64))
    rows = sizes
    if mode == 2:
        rows = largest_rows(weight.detach(), indices, result.detach(), bags, counted)
    elif mode == 0:
        by_rows = padding_idx is None and sums_rows(weight, per_sample_weights)
        bags = bags[:0] if by_rows else bags
        n = len(starts if result.requires_grad and not by_rows else offsets)
        sizes = rows = ops.zeros((n,), dtype=int64, device=indices.device)
    return result, bags.to(kind), sizes.to(kind), rows.to(kind)


def sums_rows(weight: Tensor, factors: Tensor | None) -> bool:
    """Returns whether PyTorch sums rows of weight, times factors, without the bag of each index."""
    unit = weight.stride(1) == 1 and (factors is None or factors.stride(0) == 1)
    return unit and weight.dtype.name in ("float32", "float16", "bfloat16")


def largest_rows(
    weight: Tensor, indices: Tensor, largest: Tensor, bags: Tensor, counted: Tensor
) -> Tensor:
    """Returns the row of weight that each element of `largest`, the maxima of bags, is from: the
    first such index, and 0 in empty bags."""
    n = len(indices)
    found = (weight[indices] == largest[bags]) & counted.unsqueeze(1)
    places = ops.find("tt", "where")(found, ops.arange(n, device=indices.device).unsqueeze(1), n)
    none = ops.full(tuple(largest.shape), n, dtype=int64, device=indices.device)
    first = none.index_reduce(0, bags, places, "amin")
    rows = ops.find("tt", "cat")([indices.to(int64), indices.new_zeros((1,), dtype=int64)])
    return rows[first]
