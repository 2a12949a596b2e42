"""Embedding and EmbeddingBag with from_pretrained()."""
from __future__ import annotations

from . import _layers
from .layer import preserve_rng_state
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self

    from .._tensor import Tensor


def table_layer(cls: Any, embeddings: Tensor, freeze: bool, options: dict[str, Any]) -> Any:
    """Returns a layer of a class with the weight `embeddings`."""
    if embeddings.ndim != 2:
        raise ValueError(f"embeddings must have 2 dimensions, not {embeddings.ndim}")
    with preserve_rng_state():
        layer = cls(embeddings.shape[0], embeddings.shape[1], **options)
    layer.weight = Parameter(embeddings, requires_grad=not freeze)
    return layer


class Embedding(_layers.Embedding):
    __doc__ = _layers.Embedding.__doc__
    __module__ = "tt.nn"
    _class = "Embedding"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """Returns an Embedding whose weight is `embeddings`, of shape (num_embeddings,
        embedding_dim).

        freeze: the weight requires no gradient. options: further arguments of the constructor.
        """
        return table_layer(cls, embeddings, freeze, options)


class EmbeddingBag(_layers.EmbeddingBag):
    __doc__ = _layers.EmbeddingBag.__doc__
    __module__ = "tt.nn"
    _class = "EmbeddingBag"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """Returns an EmbeddingBag whose weight is `embeddings`, of shape (num_embeddings,
        embedding_dim).

        freeze: the weight requires no gradient. options: further arguments of the constructor.
        """
        return table_layer(cls, embeddings, freeze, options)
