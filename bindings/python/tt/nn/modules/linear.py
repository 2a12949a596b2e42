"""The layers, under the name of PyTorch's module."""
from .. import *  # noqa: F403
from .. import __all__ as __all__
from ..multi_head import NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear
