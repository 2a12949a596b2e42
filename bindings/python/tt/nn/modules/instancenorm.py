"""The layers, under the name of PyTorch's module."""
from abc import ABC

from .. import *  # noqa: F403
from .. import __all__ as __all__
from .. import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d


class _InstanceNorm(ABC):
    """The base of the normalisations of single samples, for isinstance."""


for layer in (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d):
    _InstanceNorm.register(layer)
