"""The layers, under the name of PyTorch's module."""
from .. import *  # noqa: F403
from .. import __all__ as __all__
from .kinds import kind_of_dimensions

_ConstantPadNd = kind_of_dimensions("_ConstantPadNd", "ConstantPad", "ZeroPad")
_ReflectionPadNd = kind_of_dimensions("_ReflectionPadNd", "ReflectionPad")
_ReplicationPadNd = kind_of_dimensions("_ReplicationPadNd", "ReplicationPad")
_CircularPadNd = kind_of_dimensions("_CircularPadNd", "CircularPad")
