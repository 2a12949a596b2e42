"""The layers, under the name of PyTorch's module."""
from abc import ABC

from .. import *  # noqa: F403
from .. import __all__ as __all__
from .. import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm
from ..layer import NormLayer as _NormBase


class _BatchNorm(ABC):
    """The base of the batch normalisations, for isinstance."""


for layer in (BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm):
    _BatchNorm.register(layer)
