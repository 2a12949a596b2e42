"""Transformers (Vaswani et al. 2017), composed of attention, linear layers and normalizations.

They are Python modules, because the activation may be any function and their parts may be replaced.
libtt has the two layers for other languages.
"""
from __future__ import annotations

import copy
from typing import Any, Callable, Union

from .. import _ops as ops
from .._tensor import Tensor
from .._types import device, dtype
from ._layers import Dropout, LayerNorm, Linear
from .attention import MultiheadAttention
from .containers import ModuleList
from .init import xavier_uniform_
from .module import Module

Activation = Union[str, Callable[[Tensor], Tensor]]

MINUS_INFINITY = float("-inf")


def activation_of(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation == "relu":
        return ops.relu
    if activation == "gelu":
        return ops.gelu
    raise RuntimeError(f"activation is {activation!r}: must be 'relu', 'gelu' or a function")


def generate_square_subsequent_mask(
    sz: int, device: device | str | None = None, dtype: dtype | None = None
) -> Tensor:
    """Returns (sz, sz): -inf above the diagonal, else 0. Query i attends to keys 0 … i."""
    return ops.triu(ops.full((sz, sz), MINUS_INFINITY, dtype=dtype, device=device), diagonal=1)


def is_causal_mask(mask: Tensor | None, given: bool | None, n: int) -> bool:
    """Returns `given`; if it is None, whether mask equals generate_square_subsequent_mask(n). In a
    capture, where elements cannot be compared, False: the mask is used as it is."""
    if given is not None or mask is None:
        return bool(given)
    if tuple(mask.shape) != (n, n) or not mask.dtype.is_floating_point:
        return False
    from ..compiler import is_exporting

    if is_exporting():
        return False
    causal = generate_square_subsequent_mask(n, mask.device, mask.dtype)
    return bool((mask == causal).all())


class TransformerEncoderLayer(Module):
    """Self-attention, then two linear layers, each added to its input and normalized.

    d_model: number of features
    nhead: number of heads of the attention
    dim_feedforward: number of features between the linear layers
    dropout: probability of zeroing an element of a result, in training
    activation: between the linear layers: "relu", "gelu" or a function
    layer_norm_eps: added to the variance by the normalizations
    batch_first: whether input and result are (N, T, E) instead of (T, N, E)
    norm_first: whether to normalize before attention and linear layers instead of after them
    bias: whether linear layers and normalizations have biases
    """

    __module__ = "tt.nn"

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = ops.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: device | str | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **place
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation_of(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Returns a tensor of src's shape: (T, N, E), (N, T, E) if batch_first, or (T, E).

        src_mask: (T, T) or (N * nhead, T, T); bool (True excludes) or added to the scores
        src_key_padding_mask: (N, T); True, or -inf, excludes a key
        is_causal: a hint that src_mask is causal
        """
        x = src
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *masks)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, *masks))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        out, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout1(out)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the memory of an encoder, then two linear layers, each added to
    its input and normalized.

    d_model: number of features
    nhead: number of heads of both attentions
    dim_feedforward: number of features between the linear layers
    dropout: probability of zeroing an element of a result, in training
    activation: between the linear layers: "relu", "gelu" or a function
    layer_norm_eps: added to the variance by the normalizations
    batch_first: whether inputs and result are (N, T, E) instead of (T, N, E)
    norm_first: whether to normalize before attentions and linear layers instead of after them
    bias: whether linear layers and normalizations have biases
    """

    __module__ = "tt.nn"

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = ops.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: device | str | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        attention: dict[str, Any] = {
            "dropout": dropout,
            "bias": bias,
            "batch_first": batch_first,
            **place,
        }
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation_of(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns a tensor of tgt's shape: (T, N, E), (N, T, E) if batch_first, or (T, E). memory
        has S instead of T.

        tgt_mask, memory_mask: (T, T) and (T, S), or with a first dimension N * nhead; bool (True
            excludes) or added to the scores
        tgt_key_padding_mask, memory_key_padding_mask: (N, T) and (N, S); True, or -inf, excludes
        tgt_is_causal, memory_is_causal: hints that the masks are causal
        """
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        out, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout1(out)

    def _mha_block(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        padding: Tensor | None,
        is_causal: bool,
    ) -> Tensor:
        out, _ = self.multihead_attn(
            x,
            memory,
            memory,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout2(out)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """A stack of encoder layers.

    encoder_layer: the layer that is copied
    num_layers: number of copies
    norm: applied to the result; None: nothing
    enable_nested_tensor, mask_check: accepted and ignored
    """

    __module__ = "tt.nn"

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Passes src through the layers. is_causal: a hint that mask is causal; by default read
        from mask."""
        causal = is_causal_mask(mask, is_causal, length_of(src, self.layers))
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    decoder_layer: the layer that is copied
    num_layers: number of copies
    norm: applied to the result; None: nothing
    """

    __module__ = "tt.nn"

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Passes tgt, with memory, through the layers. tgt_is_causal: a hint that tgt_mask is
        causal; by default read from tgt_mask."""
        causal = is_causal_mask(tgt_mask, tgt_is_causal, length_of(tgt, self.layers))
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


def length_of(x: Tensor, layers: ModuleList) -> int:
    """Returns the number of steps of a stack's input."""
    if x.ndim < 3 or not len(layers):
        return x.shape[0]
    attention = getattr(layers[0], "self_attn", None)
    return x.shape[1 if getattr(attention, "batch_first", False) else 0]


class Transformer(Module):
    """An encoder of the source and a decoder of the target, each with a final normalization.

    d_model: number of features
    nhead: number of heads of the attentions
    num_encoder_layers, num_decoder_layers: numbers of layers
    dim_feedforward: number of features between the linear layers
    dropout: probability of zeroing an element of a result, in training
    activation: between the linear layers: "relu", "gelu" or a function
    custom_encoder, custom_decoder: modules that replace encoder and decoder
    layer_norm_eps: added to the variance by the normalizations
    batch_first: whether inputs and result are (N, T, E) instead of (T, N, E)
    norm_first: whether to normalize before attentions and linear layers instead of after them
    bias: whether linear layers and normalizations have biases
    """

    __module__ = "tt.nn"

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = ops.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: device | str | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        shape = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        options: dict[str, Any] = {
            "batch_first": batch_first,
            "norm_first": norm_first,
            "bias": bias,
            **place,
        }
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(
                TransformerEncoderLayer(*shape, **options),
                num_encoder_layers,
                LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place),
            )
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(*shape, **options),
                num_decoder_layers,
                LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place),
            )
        self.decoder = custom_decoder
        for p in self.parameters():
            if p.ndim > 1:
                xavier_uniform_(p)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns a tensor of tgt's shape: (T, N, E), (N, T, E) if batch_first, or (T, E). src has
        S instead of T. The masks are those of the layers; memory_mask is (T, S)."""
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(
                f"src is {tuple(src.shape)}, tgt is {tuple(tgt.shape)}: must have the same number "
                f"of sequences (dimension {batch})"
            )
        for name, x in (("src", src), ("tgt", tgt)):
            if x.shape[-1] != self.d_model:
                raise RuntimeError(
                    f"{name} is {tuple(x.shape)}: its last size must be d_model {self.d_model}"
                )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    generate_square_subsequent_mask = staticmethod(generate_square_subsequent_mask)
