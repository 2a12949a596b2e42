"""Multi-head attention as a function: nn.MultiheadAttention with its parameters as arguments; the
class of that layer's out_proj."""
from __future__ import annotations

import math
from typing import Sequence

from .. import _ops as ops
from .._dtype_names import bool as bool_dtype
from .._interception import overridable
from .._tensor import Tensor
from . import _layers
from .layer import LAYERS

__all__ = ["multi_head_attention_forward"]


class NonDynamicallyQuantizableLinear(_layers.Linear):
    __doc__ = _layers.Linear.__doc__
    __module__ = "tt.nn.modules.linear"


LAYERS["MultiheadAttention.out_proj"] = NonDynamicallyQuantizableLinear


def additive_mask(mask: Tensor | None, name: str, like: Tensor) -> Tensor | None:
    """Returns the mask as numbers to add to the scores."""
    if mask is None or mask.dtype.is_floating_point:
        return None if mask is None else mask.to(like.dtype)
    if mask.dtype != bool_dtype:
        raise RuntimeError(f"{name} is {mask.dtype}: must be bool or floating")
    zeros = ops.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return zeros.masked_fill(mask, float("-inf"))


def projections(
    inputs: Sequence[Tensor], weights: Sequence[Tensor], bias: Tensor | None
) -> list[Tensor]:
    """Returns the projections of query, key and value."""
    parts: Sequence[Tensor | None] = [None] * 3 if bias is None else ops.chunk(bias, 3)
    query, key, value = inputs
    if query is key and key is value and len(weights) == 1:
        return list(ops.chunk(linear(query, weights[0], bias), 3, -1))
    if len(weights) == 1:
        weights = ops.chunk(weights[0], 3)
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, parts)]


def split_heads(x: Tensor, rows: int, width: int) -> Tensor:
    """Returns x of shape (S, N, E) as (rows, S, width), a row for each head of each sample."""
    return x.reshape(x.shape[0], rows, width).transpose(0, 1)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return ops.find("nn.functional", "linear")(x, weight, bias)


@overridable
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention with its parameters as arguments. Returns (output, weights).

    query, key, value: (L, N, E), (S, N, E_k) and (S, N, E_v), or without N
    embed_dim_to_check: E
    in_proj_weight: (3 * E, E); q_proj_weight, k_proj_weight and v_proj_weight if
        use_separate_proj_weight
    bias_k, bias_v: (1, 1, E), appended to keys and values
    add_zero_attn: whether to append a row of zeros to keys and values
    key_padding_mask: (N, S); True, or -inf, excludes a key
    attn_mask: (L, S) or (N * num_heads, L, S); bool (True excludes) or added to the scores
    static_k, static_v: (N * num_heads, S, E / num_heads), replace the projected ones
    need_weights: whether to return weights (N, L, S), per head if average_attn_weights is False
    is_causal: a hint that attn_mask is causal
    """
    check_inputs(query, key, value, embed_dim_to_check, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError("is_causal describes attn_mask, which is not given")
    batched = query.ndim == 3
    if not batched:
        query, key, value = with_batch(query, key, value)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    steps, n, width = query.shape
    head = width // num_heads
    padding = additive_mask(key_padding_mask, "key_padding_mask", query)
    mask = additive_mask(attn_mask, "attn_mask", query)
    weights = [in_proj_weight]
    if use_separate_proj_weight:
        weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    q, k, v = projections((query, key, value), present(weights), in_proj_bias)
    appended = 0
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise RuntimeError("bias_k and bias_v cannot be appended to static_k and static_v")
        k = ops.cat([k, bias_k.expand(1, n, width)])
        v = ops.cat([v, bias_v.expand(1, n, width)])
        appended += 1
    q = split_heads(q, n * num_heads, head)
    k = split_heads(k, n * num_heads, head) if static_k is None else static_k
    v = split_heads(v, n * num_heads, head) if static_v is None else static_v
    if add_zero_attn:
        zeros = ops.zeros(n * num_heads, 1, head, dtype=k.dtype, device=k.device)
        k, v = ops.cat([k, zeros], 1), ops.cat([v, zeros], 1)
        appended += 1
    joint = joined_mask(mask, padding, appended, (n, num_heads, steps, k.shape[1]))
    q, k, v = (x.reshape(n, num_heads, -1, head) for x in (q, k, v))
    dropout = dropout_p if training else 0.0
    shares = None
    if need_weights:
        out, shares = weighted_values(q, k, v, joint, dropout)
        if average_attn_weights:
            shares = shares.mean(1)
        if not batched:
            shares = shares.squeeze(0)
    else:
        causal = is_causal and padding is None  # leaves out appended rows, as PyTorch does
        attention = ops.find("nn.functional", "scaled_dot_product_attention")
        out = attention(q, k, v, None if causal else joint, dropout, causal)
    out = out.permute(2, 0, 1, 3).reshape(steps, n, width)
    out = linear(out, out_proj_weight, out_proj_bias)
    return out if batched else out.squeeze(1), shares


def with_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the inputs as batches of one; one tensor in place of three remains one."""
    batch = query.unsqueeze(1)
    if query is key and key is value:
        return batch, batch, batch
    return batch, key.unsqueeze(1), value.unsqueeze(1)


def check_inputs(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_heads: int) -> None:
    if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
        raise RuntimeError(
            f"query has {query.ndim} dimensions, key {key.ndim}, value {value.ndim}: all must have "
            "2 or 3"
        )
    if query.shape[-1] != embed_dim or embed_dim % num_heads:
        raise RuntimeError(
            f"query is {tuple(query.shape)}: its last size must be embed_dim_to_check "
            f"{embed_dim} and a multiple of num_heads {num_heads}"
        )
    if key.shape[:-1] != value.shape[:-1]:
        raise RuntimeError(
            f"key is {tuple(key.shape)}, value is {tuple(value.shape)}: all sizes but the last "
            "must be equal"
        )


def present(weights: Sequence[Tensor | None]) -> list[Tensor]:
    """Returns the weights of the projections; raises if one is missing."""
    found = [w for w in weights if w is not None]
    if len(found) < len(weights):
        raise RuntimeError(
            "in_proj_weight, or with use_separate_proj_weight q_proj_weight, k_proj_weight and "
            "v_proj_weight, must be given"
        )
    return found


def weighted_values(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> tuple[Tensor, Tensor]:
    """Returns the sums of v by the softmax of the scores, and that softmax."""
    scores = ops.matmul(q * math.sqrt(1 / q.shape[-1]), k.transpose(-2, -1))
    shares = ops.softmax(scores if mask is None else scores + mask, -1)
    if dropout:
        shares = ops.find("nn.functional", "dropout")(shares, dropout)
    return ops.matmul(shares, v), shares


def joined_mask(
    mask: Tensor | None, padding: Tensor | None, appended: int, shape: tuple[int, int, int, int]
) -> Tensor | None:
    """Returns the sum of both masks, broadcastable to (N, heads, L, S). Appended keys are not
    masked."""
    n, heads, steps, keys = shape
    if mask is not None:
        if tuple(mask.shape) == (n * heads, steps, keys - appended):
            mask = mask.reshape(n, heads, steps, keys - appended)
        elif tuple(mask.shape) != (steps, keys - appended):
            raise RuntimeError(
                f"attn_mask is {tuple(mask.shape)}: must be {(steps, keys - appended)} or "
                f"{(n * heads, steps, keys - appended)}"
            )
    if padding is not None:
        if tuple(padding.shape) != (n, keys - appended):
            raise RuntimeError(
                f"key_padding_mask is {tuple(padding.shape)}: must be {(n, keys - appended)}"
            )
        padding = padding.reshape(n, 1, 1, keys - appended)
        mask = padding if mask is None else mask + padding
    if mask is None or not appended:
        return mask
    return ops.pad(mask, [0, appended])
