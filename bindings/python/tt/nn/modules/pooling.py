"""The layers, under the name of PyTorch's module."""
from .. import *  # noqa: F403
from .. import __all__ as __all__
from .kinds import kind_of_dimensions

_MaxPoolNd = kind_of_dimensions("_MaxPoolNd", "MaxPool")
_AvgPoolNd = kind_of_dimensions("_AvgPoolNd", "AvgPool")
_LPPoolNd = kind_of_dimensions("_LPPoolNd", "LPPool")
_AdaptiveMaxPoolNd = kind_of_dimensions("_AdaptiveMaxPoolNd", "AdaptiveMaxPool")
_AdaptiveAvgPoolNd = kind_of_dimensions("_AdaptiveAvgPoolNd", "AdaptiveAvgPool")
_MaxUnpoolNd = kind_of_dimensions("_MaxUnpoolNd", "MaxUnpool")
