"""Layers and models, by the names of torch.nn."""
from . import _layers, functional, init, utils
from ._layers import *  # noqa: F403
from .attention import MultiheadAttention
from .containers import Identity, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .embedding import Embedding
from .module import Module
from .parameter import Buffer, Parameter

__all__ = [
    "Buffer",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "Identity",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "functional",
    "init",
    "utils",
]
__all__ += _layers.__all__
