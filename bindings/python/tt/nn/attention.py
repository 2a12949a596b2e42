"""MultiheadAttention: the options of its forward."""
from ctypes import byref
from struct import Struct

from .._kinds import kind_name
from .._convert import tensor_address
from .._lib import fail, lib, local
from .._tensor import Tensor, new
from .layers import LAYERS

OPTIONS = Struct("QPiPii")


class MultiheadAttention(LAYERS["MultiheadAttention"]):
    __doc__ = LAYERS["MultiheadAttention"].__doc__

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        for name, x in (("query", query), ("key", key), ("value", value)):
            if not isinstance(x, Tensor):
                raise TypeError(
                    f"MultiheadAttention(): argument '{name}' must be Tensor, not {kind_name(x)}"
                )
        opts = OPTIONS.pack(
            31,
            tensor_address(key_padding_mask, "MultiheadAttention", "key_padding_mask"),
            bool(need_weights),
            tensor_address(attn_mask, "MultiheadAttention", "attn_mask"),
            bool(average_attn_weights),
            bool(is_causal),
        )
        out, weights = new(Tensor), new(Tensor)
        if lib.tt_nn_multihead_attention_forward(
            local.ctx, self._module, query, key, value, opts, byref(out), byref(weights)
        ):
            fail()
        return out, weights if weights._address else None


LAYERS["MultiheadAttention"] = MultiheadAttention
