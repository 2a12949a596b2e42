"""The layers, under the name of PyTorch's module."""
from .. import *  # noqa: F403
from .. import __all__ as __all__
from ..transformer import activation_of as _get_activation_fn
