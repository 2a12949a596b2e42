"""Layers and models, by the names of torch.nn."""
from . import functional, utils
from . import attention, conv, embedding, init  # noqa: F401  (they put classes among the layers)
from .containers import Identity, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .layers import LAYERS
from .module import Module
from .parameter import Buffer, Parameter

globals().update(LAYERS)
__all__ = [
    "Buffer",
    "Identity",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "functional",
    "init",
    "utils",
    *LAYERS,
]
