"""Causal masks of scaled_dot_product_attention for queries and keys of different lengths."""
from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ... import _ops as ops
from ..._tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner of the scores at which the diagonal of a causal mask is."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for the argument attn_mask of scaled_dot_product_attention, which makes it
    where it is needed.

    variant: UPPER_LEFT: query i attends to keys 0 … i; LOWER_RIGHT: the last query attends to all
        keys, the one before to all but the last, and so on.
    seq_len_q, seq_len_kv: numbers of queries and of keys.
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        return super().__new__(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(
                f"CausalBias: variant must be a CausalVariant, not {type(variant).__name__}"
            )
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if variant == CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                f"CausalBias: {seq_len_q} queries are more than {seq_len_kv} keys: the first "
                "queries attend to no key",
                stacklevel=2,
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """Returns the mask: true where a key takes part."""
        lower_right = self.variant == CausalVariant.LOWER_RIGHT
        diagonal = self.seq_len_kv - self.seq_len_q if lower_right else 0
        sizes = (self.seq_len_q, self.seq_len_kv)
        return ops.ones(sizes, dtype=bool, device=device).tril(diagonal)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, is_causal: bool, **options: Any
    ) -> Tensor:
        if is_causal:
            raise ValueError(
                "scaled_dot_product_attention: attn_mask is a CausalBias: is_causal must be False"
            )
        attend = ops.find("nn.functional", "scaled_dot_product_attention")
        same = self.seq_len_q == self.seq_len_kv
        if same or self.variant == CausalVariant.UPPER_LEFT:
            return attend(query, key, value, is_causal=True, **options)
        return attend(query, key, value, self._materialize(query.device), **options)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") != "scaled_dot_product_attention":
            return super().__torch_function__(func, types, args, kwargs)
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = {**dict(zip(names, args)), **kwargs}
        bias = given.pop("attn_mask", None)
        if not isinstance(bias, CausalBias):
            raise TypeError(
                "scaled_dot_product_attention: a CausalBias can only be given as attn_mask"
            )
        return bias._attend(is_causal=given.pop("is_causal", False), **given)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Returns a mask with which query i attends to keys 0 … i. size: numbers of queries and of
    keys."""
    return of_size("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """Returns a mask with which the last query attends to all keys, the one before to all but the
    last, and so on. size: numbers of queries and keys."""
    return of_size("causal_lower_right", CausalVariant.LOWER_RIGHT, size)


def of_size(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(
            f"{name}: {len(size)} sizes are given: must be 2, numbers of queries and keys"
        )
    return CausalBias(variant, *size)
