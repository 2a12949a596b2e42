"""MultiheadAttention with the options of its forward; PyTorch's choice of implementations."""
from __future__ import annotations

from contextlib import contextmanager
from ctypes import byref
from enum import Enum
from struct import Struct
from typing import Iterator

from ... import _cuda_math
from ..._convert import instance, tensor_address
from ..._tensor_facts import TensorHandle
from ..._lib import fail, lib, local
from ..._tensor import Tensor, wrap
from .. import _layers
from ..layer import Layer

OPTIONS = Struct("QPiPii")  # tt_nn_multihead_attention_forward_opts
ALL_GIVEN = 31


class MultiheadAttention(_layers.MultiheadAttention):
    __doc__ = _layers.MultiheadAttention.__doc__
    __module__ = "tt.nn"
    _class = "MultiheadAttention"

    @property
    def head_dim(self) -> int:
        """The number of features of each head."""
        return self.embed_dim // self.num_heads

    def forward(  # type: ignore[override]
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns (output, weights).

        query: (L, N, E), or (N, L, E) if batch_first; key and value likewise with S for L. N may be
            missing. The output has query's shape.
        key_padding_mask: (N, S); True, or -inf, excludes a key.
        attn_mask: (L, S) or (N heads, L, S); bool (True excludes) or added to the scores.
        need_weights: returns weights (N, L, S), or (N, heads, L, S) if average_attn_weights is
            False. Otherwise weights are None and the computation is faster.
        is_causal: a hint that attn_mask is causal.
        """
        self._follow()
        if isinstance(self.out_proj, Layer):  # its C module is called by that of self
            self.out_proj._follow()
        op = "MultiheadAttention"
        for name, x in (("query", query), ("key", key), ("value", value)):
            instance(Tensor, x, op, name)
        opts = OPTIONS.pack(
            ALL_GIVEN,
            tensor_address(key_padding_mask, op, "key_padding_mask"),
            bool(need_weights),
            tensor_address(attn_mask, op, "attn_mask"),
            bool(average_attn_weights),
            bool(is_causal),
        )
        out, weights = TensorHandle(), TensorHandle()
        if lib.tt_nn_multihead_attention_forward(
            local.ctx, self._module, query, key, value, opts, byref(out), byref(weights)
        ):
            fail()
        return wrap(out), wrap(weights) if weights._address else None


class SDPBackend(Enum):
    """The implementations of scaled_dot_product_attention in PyTorch. tt has one, and cuDNN's on
    CUDA devices."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | list[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Sets whether cuDNN may compute scaled_dot_product_attention on CUDA devices in the block;
    where it does not, tt's kernel does, whichever implementations are given."""
    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not given or not all(isinstance(backend, SDPBackend) for backend in given):
        raise TypeError("sdpa_kernel: backends must be an SDPBackend or a list of them")
    with _cuda_math.choice(cudnn_attention=SDPBackend.CUDNN_ATTENTION in given):
        yield
