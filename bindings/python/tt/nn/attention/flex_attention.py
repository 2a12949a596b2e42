"""Attention with scores and masks of one's own, with the API of torch.nn.attention.flex_attention.

score_mod(score, b, h, q, kv) and mask_mod(b, h, q, kv) are called once, with tensors of indices
that broadcast to (B, H, Q, KV), instead of once for each score. The scores are computed whole.
"""
from __future__ import annotations

from math import inf
from typing import Any, Callable, NamedTuple

from ... import _ops as ops
from ..._tensor import Tensor
from ..._types import BOOL, int64

Mod = Callable[..., Tensor]

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """Selects what flex_attention returns beside its result: logsumexp, largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The logarithms of sums of exponentials, and the largest scores, where requested."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Masks nothing."""
    return ops.ones((), dtype=BOOL, device=batch.device)


def and_masks(*mask_mods: Mod) -> Mod:
    """Returns a mask_mod that is true where all are."""

    def both(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = noop_mask(b, h, q, kv)
        for mask_mod in mask_mods:
            result = result & mask_mod(b, h, q, kv)
        return result

    return both


def or_masks(*mask_mods: Mod) -> Mod:
    """Returns a mask_mod that is true where one is."""

    def either(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = ~noop_mask(b, h, q, kv)
        for mask_mod in mask_mods:
            result = result | mask_mod(b, h, q, kv)
        return result

    return either


def indices(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """Returns the index of each dimension, in shapes that broadcast to sizes."""
    made = []
    for dim, size in enumerate(sizes):
        shape = [1] * len(sizes)
        shape[dim] = size
        made.append(ops.arange(size, dtype=int64, device=device).view(shape))
    return made


def create_mask(
    mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = "cpu"
) -> Tensor:
    """Returns the mask of a mask_mod, (B, H, Q_LEN, KV_LEN); None is 1."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*indices(sizes, device)).expand(sizes)


class BlockMask:
    """A mask_mod, and which blocks of scores have an element that is not masked.

    kv_num_blocks: their number for each row of blocks. kv_indices: their places, those first.
    """

    def __init__(
        self, mask_mod: Mod, shape: tuple[int, ...], block_size: tuple[int, int], dense: Tensor
    ) -> None:
        self.mask_mod, self.shape, self.BLOCK_SIZE, self.dense = mask_mod, shape, block_size, dense
        self.seq_lengths = shape[2:]
        self.kv_num_blocks = dense.sum(-1)
        self.kv_indices = dense.long().argsort(-1, descending=True, stable=True)

    def to_dense(self) -> Tensor:
        """Returns 1 for each block that has an element that is not masked."""
        return self.dense.long()

    def sparsity(self) -> float:
        """Returns the share of blocks that are masked, in percent."""
        return 100 * (1 - self.dense.float().mean().item())

    def numel(self) -> int:
        """Returns the number of scores."""
        b, h, q, kv = self.shape
        return b * h * q * kv

    def to(self, device: Any) -> BlockMask:
        """Returns the mask on a device."""
        return BlockMask(self.mask_mod, self.shape, self.BLOCK_SIZE, self.dense.to(device))

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = "cpu",
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """Returns the BlockMask of a mask_mod for scores (B, H, Q_LEN, KV_LEN); None is 1."""
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -Q_LEN % size[0], -KV_LEN % size[1]
    padded = ops.constant_pad_nd(mask, (0, columns, 0, rows))
    blocks = padded.unflatten(-1, (-1, size[1])).unflatten(-3, (-1, size[0]))
    dense = blocks.any(-1).any(-2)
    return BlockMask(mask_mod, tuple(mask.shape), (size[0], size[1]), dense)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Returns softmax(score_mod(query · key^T scale)) · value.

    query: (B, H, Q, E); key: (B, H, KV, E); value: (B, H, KV, V). scale: by default E^-0.5.
    block_mask: scores where its mask_mod is false are left out; a row without any other is 0.
    enable_gqa: key and value may have a divisor of H heads. return_lse: returns the logarithm of
    the sum of the exponentials of scores, too; return_aux: an AuxOutput. kernel_options is ignored.
    """
    heads = query.shape[1]
    if enable_gqa and key.shape[1] != heads:
        repeats = heads // key.shape[1]
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    if query.ndim != 4 or key.shape[1] != heads:
        raise ValueError(
            f"flex_attention: query is {list(query.shape)}, key is {list(key.shape)}: must be of 4 "
            "dimensions, and of as many heads unless enable_gqa"
        )
    scores = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    places = indices(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask_mod(*places), -inf)
    lse = scores.logsumexp(-1)
    weights = scores.softmax(-1)
    empty = (lse == -inf).unsqueeze(-1)
    result = weights.masked_fill(empty, 0.0).to(value.dtype) @ value
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return result, AuxOutput(lse if return_aux.lse else None, largest)
    return (result, lse) if return_lse else result


def __dir__() -> list[str]:
    return __all__
