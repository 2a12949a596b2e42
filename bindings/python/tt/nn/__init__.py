"""Layers and models, with the API of torch.nn."""
from __future__ import annotations

from importlib import import_module
from typing import Any as Any
from typing import Literal as Literal

from .._tensor import Tensor as Tensor  # with those above, names in hints of the layers' attributes
from . import _layers, functional, init, lazy, utils
from ._layers import *  # noqa: F403
from .activations import Hardtanh
from .adaptive import AdaptiveLogSoftmaxWithLoss
from .attention import MultiheadAttention
from .containers import Identity, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .embedding import Embedding, EmbeddingBag
from .lazy import *  # noqa: F403
from .losses import CTCLoss, GaussianNLLLoss, LinearCrossEntropyLoss, TripletMarginWithDistanceLoss
from .module import Module
from .normalization import SyncBatchNorm
from .parameter import Buffer, Parameter
from .pooling_layers import (
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNBase, RNNCell
from .recurrent import Cell as RNNCellBase
from .resizing import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d
from .transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import grad as grad
    from . import modules as modules
    from . import parallel as parallel
    from .parallel import DataParallel as DataParallel

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
    "Buffer",
    "CTCLoss",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "EmbeddingBag",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "GRU",
    "GRUCell",
    "GaussianNLLLoss",
    "Hardtanh",
    "Identity",
    "LSTM",
    "LSTMCell",
    "LinearCrossEntropyLoss",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RNN",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "Sequential",
    "SyncBatchNorm",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TripletMarginWithDistanceLoss",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "functional",
    "init",
    "utils",
]
__all__ += _layers.__all__ + lazy.__all__
LAZY = "DataParallel grad modules parallel"
__all__ += LAZY.split()

if not TYPE_CHECKING:

    def __getattr__(name):
        """Loads rarely used modules when they are first used."""
        if name not in LAZY.split():
            raise AttributeError(f"module 'tt.nn' has no attribute '{name}'")
        if name == "DataParallel":
            return import_module(".parallel", __name__).DataParallel
        return import_module("." + name, __name__)


def __dir__() -> list[str]:
    return __all__
