"""The layers, under the name of PyTorch's module."""
from .. import *  # noqa: F403
from .. import AlphaDropout, Dropout, FeatureAlphaDropout
from .. import __all__ as __all__
from .kinds import kind_of_dimensions

_DropoutNd = kind_of_dimensions("_DropoutNd", "Dropout")
for layer in (Dropout, AlphaDropout, FeatureAlphaDropout):
    _DropoutNd.register(layer)
