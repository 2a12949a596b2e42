"""The layers, under the name of PyTorch's module."""
from .. import *  # noqa: F403
from .. import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .. import __all__ as __all__
from ..layer import ConvLayer as _ConvNd
from .kinds import kind
from .utils import _pair as _pair
from .utils import _reverse_repeat_tuple as _reverse_repeat_tuple
from .utils import _single as _single
from .utils import _triple as _triple

_ConvTransposeNd = kind("_ConvTransposeNd", ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
