"""torch.nn.modules: the layers again. Each module, such as batchnorm, has all layers."""
from importlib import import_module

from .. import _layers
from .._layers import *  # noqa: F403
from ..containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from ..module import Module
from ..normalization import SyncBatchNorm as SyncBatchNorm

TYPE_CHECKING = False
__all__ = ["Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
MODULES = (
    "activation batchnorm container conv dropout flatten instancenorm linear loss module "
    "normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils"
)

if not TYPE_CHECKING:

    def __getattr__(name):
        """Loads a module when it is first used."""
        if name not in MODULES.split():
            raise AttributeError(f"module 'tt.nn.modules' has no attribute '{name}'")
        return import_module("." + name, __name__)
