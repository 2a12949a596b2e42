"""The layers, under the name of PyTorch's module."""
from .. import *  # noqa: F403
from .. import Linear
from .. import __all__ as __all__

NonDynamicallyQuantizableLinear = Linear  # the class of out_proj in MultiheadAttention
