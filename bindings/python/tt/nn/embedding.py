"""Embedding and EmbeddingBag with from_pretrained() and sparse gradients."""
from __future__ import annotations

from functools import wraps
from typing import Any

from .._hints import Self
from .._tensor import Tensor
from . import _layers, tables
from .layer import preserve_rng_state
from .parameter import Parameter

TYPE_CHECKING = False


def table_layer(cls: Any, embeddings: Tensor, freeze: bool, options: dict[str, Any]) -> Any:
    """Returns a layer of a class with the weight `embeddings`."""
    if embeddings.ndim != 2:
        raise ValueError(f"embeddings must have 2 dimensions, not {embeddings.ndim}")
    with preserve_rng_state():
        layer = cls(embeddings.shape[0], embeddings.shape[1], **options)
    layer.weight = Parameter(embeddings, requires_grad=not freeze)
    return layer


def taking_weight(init: Any) -> Any:
    """Returns a constructor that also takes _weight, in place of a weight that is drawn, and
    _freeze: whether the weight requires no gradient."""

    @wraps(init)  # whose signature it shows
    def construct(
        self: Any, *args: Any, _weight: Tensor | None = None, _freeze: bool = False, **options: Any
    ) -> None:
        init(self, *args, **options)
        if _weight is not None:
            shape = self.weight.shape
            if _weight.shape != shape:
                raise AssertionError(f"_weight is {list(_weight.shape)}: must be {list(shape)}")
            self.weight = _weight if isinstance(_weight, Parameter) else Parameter(_weight)
        if _freeze:
            self.weight.requires_grad_(False)

    return construct


class Table:
    """The base of the layers: C looks rows up, but with sparse gradients Python does."""

    sparse: bool

    def _new_module(self, values: dict[str, Any]) -> Any:
        return super()._new_module({**values, "sparse": False})  # type: ignore[misc]

    def _as_attributes(self, values: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] = super()._as_attributes(values)  # type: ignore[misc]
        if shown["padding_idx"] is not None and shown["padding_idx"] < 0:
            shown["padding_idx"] += shown["num_embeddings"]
        return shown


class Embedding(Table, _layers.Embedding):
    __doc__ = _layers.Embedding.__doc__
    __module__ = "tt.nn"
    _class = "Embedding"
    if not TYPE_CHECKING:  # which takes the generated constructor
        __init__ = taking_weight(_layers.Embedding.__init__)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """Returns an Embedding whose weight is `embeddings`, of shape (num_embeddings,
        embedding_dim).

        freeze: the weight requires no gradient. options: further arguments of the constructor.
        """
        return table_layer(cls, embeddings, freeze, options)

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return f"{text}, sparse=True" if self.sparse else text

    def forward(self, input: Tensor) -> Tensor:
        if not self.sparse:
            return self._forward(input)
        return tables.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            True,
        )


class EmbeddingBag(Table, _layers.EmbeddingBag):
    __doc__ = _layers.EmbeddingBag.__doc__
    __module__ = "tt.nn"
    _class = "EmbeddingBag"
    if not TYPE_CHECKING:  # which takes the generated constructor
        __init__ = taking_weight(_layers.EmbeddingBag.__init__)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """Returns an EmbeddingBag whose weight is `embeddings`, of shape (num_embeddings,
        embedding_dim).

        freeze: the weight requires no gradient. options: further arguments of the constructor.
        """
        return table_layer(cls, embeddings, freeze, options)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        if not self.sparse:
            return self._forward(input, offsets, per_sample_weights)
        return tables.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            True,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )
