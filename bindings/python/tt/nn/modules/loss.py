"""The layers, under the name of PyTorch's module."""
from .. import *  # noqa: F403
from .. import __all__ as __all__
from ..losses import _Loss as _Loss
from ..losses import _WeightedLoss as _WeightedLoss
