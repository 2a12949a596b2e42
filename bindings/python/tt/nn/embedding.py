"""Embedding: from a table that is there."""
from .layers import LAYERS, undrawn
from .parameter import Parameter


class Embedding(LAYERS["Embedding"]):
    __doc__ = LAYERS["Embedding"].__doc__

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, **options):
        """An Embedding with these rows; freeze: they take no gradient."""
        if embeddings.ndim != 2:
            raise ValueError("embeddings must have 2 dimensions")
        with undrawn():
            made = cls(*embeddings.shape, **options)
        made.weight = Parameter(embeddings, requires_grad=not freeze)
        return made


LAYERS["Embedding"] = Embedding
