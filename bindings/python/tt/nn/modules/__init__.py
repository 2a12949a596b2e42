"""torch.nn.modules: the layers again. Each module, such as batchnorm, has all layers."""
from importlib import import_module

from ... import nn
from .._layers import *  # noqa: F403
from ..containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from ..module import Module
from ..normalization import SyncBatchNorm as SyncBatchNorm

TYPE_CHECKING = False
NOT_LAYERS = ("DataParallel", "functional", "grad", "init", "modules", "parallel", "utils")
__all__ = [name for name in nn.__all__ if name not in NOT_LAYERS]
MODULES = (
    "activation batchnorm container conv dropout flatten instancenorm lazy linear loss module "
    "normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils"
)

if not TYPE_CHECKING:

    def __getattr__(name):
        """Returns a layer of tt.nn, or loads a module when it is first used."""
        if name in __all__:
            return getattr(nn, name)
        if name not in MODULES.split():
            raise AttributeError(f"module 'tt.nn.modules' has no attribute '{name}'")
        return import_module("." + name, __name__)
