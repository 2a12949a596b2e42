"""Layers and models, by the names of torch.nn."""
from . import functional, utils
from . import attention  # noqa: F401  (puts its class among the layers)
from .containers import Identity, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .layers import LAYERS
from .module import Module
from .parameter import Buffer, Parameter

globals().update(LAYERS)
__all__ = ["Buffer", "Identity", "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList", "Sequential", "functional", "utils", *LAYERS]
