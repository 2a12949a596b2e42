"""torch.nn.modules: the layers again. Each module, such as batchnorm, has all layers."""
from importlib import import_module

from .. import _layers
from .._layers import *  # noqa: F403
from ..containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from ..module import Module

TYPE_CHECKING = False
__all__ = ["Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
