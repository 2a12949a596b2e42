"""tt: tensors, gradients and neural networks over libtt. Names and conventions are PyTorch's.

Modules, operators, layers and optimizers are loaded when they are first used.
"""
from __future__ import annotations

from builtins import bool as _bool
from importlib import import_module
from typing import Any

from . import _dtype_names, _lib, _ops, _types
from ._dtype_names import *  # noqa: F403
from ._lib import VERSION as __version__
from ._tensor import Tensor as Tensor
from ._layout import layout as layout
from ._layout import per_channel_affine as per_channel_affine
from ._layout import per_channel_symmetric as per_channel_symmetric
from ._layout import per_tensor_affine as per_tensor_affine
from ._layout import per_tensor_symmetric as per_tensor_symmetric
from ._layout import qscheme as qscheme
from ._layout import sparse_coo as sparse_coo
from ._layout import jagged as jagged
from ._layout import sparse_csr as sparse_csr
from ._layout import sparse_bsc as sparse_bsc
from ._layout import sparse_bsr as sparse_bsr
from ._layout import sparse_csc as sparse_csc
from ._layout import strided as strided
from ._types import Size as Size
from ._types import device as device
from ._types import dtype as dtype
from ._types import memory_format as memory_format
from .errors import TtError as TtError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import accelerator as accelerator
    from . import array_api as array_api
    from . import amp as amp
    from . import ao as ao
    from . import autograd as autograd
    from . import backends as backends
    from . import compiler as compiler
    from . import export as export
    from . import cpu as cpu
    from . import cuda as cuda
    from . import distributed as distributed
    from . import distributions as distributions
    from . import errors as errors
    from . import files as files
    from . import fft as fft
    from . import func as func
    from . import futures as futures
    from . import fx as fx
    from . import hub as hub
    from . import jit as jit
    from . import library as library
    from . import linalg as linalg
    from . import masked as masked
    from . import mps as mps
    from . import multiprocessing as multiprocessing
    from . import nested as nested
    from . import nn as nn
    from . import onnx as onnx
    from . import ops as ops
    from . import optim as optim
    from . import overrides as overrides
    from . import profiler as profiler
    from . import quantization as quantization
    from . import quasirandom as quasirandom
    from . import random as random
    from . import return_types as return_types
    from . import runtime as runtime
    from . import safetensors as safetensors
    from . import serialization as serialization
    from . import signal as signal
    from . import special as special
    from . import sparse as sparse
    from . import storage as storage
    from . import testing as testing
    from . import torch_version as torch_version
    from . import types as types
    from . import utils as utils
    from . import version as version
    from . import xpu as xpu
    from ._comparison import allclose as allclose
    from ._comparison import equal as equal
    from ._constants import e as e
    from ._constants import inf as inf
    from ._constants import nan as nan
    from ._constants import newaxis as newaxis
    from ._constants import pi as pi
    from ._create import as_tensor as as_tensor
    from ._create import asarray as asarray
    from ._create import from_numpy as from_numpy
    from ._create import frombuffer as frombuffer
    from ._create import scalar_tensor as scalar_tensor
    from ._create import tensor as tensor
    from ._dlpack import from_dlpack as from_dlpack
    from ._handles import build_info as build_info
    from ._handles import get_num_threads as get_num_threads
    from ._handles import set_num_threads as set_num_threads
    from ._limits import finfo as finfo
    from ._limits import iinfo as iinfo
    from ._promotion import can_cast as can_cast
    from ._promotion import promote_types as promote_types
    from ._promotion import result_type as result_type
    from . import _settings
    from ._settings import _assert as _assert
    from ._settings import as_torch as as_torch
    from ._settings import (
        are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    )
    from ._settings import broadcast_shapes as broadcast_shapes
    from ._settings import get_default_device as get_default_device
    from ._settings import get_default_dtype as get_default_dtype
    from ._settings import get_device_module as get_device_module
    from ._settings import get_float32_matmul_precision as get_float32_matmul_precision
    from ._settings import get_num_interop_threads as get_num_interop_threads
    from ._settings import is_inference as is_inference
    from ._settings import is_inference_mode_enabled as is_inference_mode_enabled
    from ._settings import is_nonzero as is_nonzero
    from ._settings import is_same_size as is_same_size
    from ._settings import is_signed as is_signed
    from ._settings import is_storage as is_storage
    from ._settings import is_warn_always_enabled as is_warn_always_enabled
    from ._settings import numel as numel
    from ._settings import set_default_device as set_default_device
    from ._settings import set_default_dtype as set_default_dtype
    from ._settings import set_default_tensor_type as set_default_tensor_type
    from ._settings import set_deterministic_debug_mode as set_deterministic_debug_mode
    from ._settings import set_float32_matmul_precision as set_float32_matmul_precision
    from ._settings import set_flush_denormal as set_flush_denormal
    from ._settings import set_num_interop_threads as set_num_interop_threads
    from ._settings import set_printoptions as set_printoptions
    from ._settings import set_warn_always as set_warn_always
    from ._settings import typename as typename
    from ._settings import use_deterministic_algorithms as use_deterministic_algorithms
    from ._tensor_facts import is_complex as is_complex
    from ._tensor_facts import is_floating_point as is_floating_point
    from ._tensor_types import BFloat16Tensor as BFloat16Tensor
    from ._tensor_types import BoolTensor as BoolTensor
    from ._tensor_types import ByteTensor as ByteTensor
    from ._tensor_types import CharTensor as CharTensor
    from ._tensor_types import DoubleTensor as DoubleTensor
    from ._tensor_types import FloatTensor as FloatTensor
    from ._tensor_types import HalfTensor as HalfTensor
    from ._tensor_types import IntTensor as IntTensor
    from ._tensor_types import LongTensor as LongTensor
    from ._tensor_types import ShortTensor as ShortTensor
    from .amp import autocast as autocast
    from .amp.autocast_mode import clear_autocast_cache as clear_autocast_cache
    from .amp.autocast_mode import get_autocast_cpu_dtype as get_autocast_cpu_dtype
    from .amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
    from .amp.autocast_mode import get_autocast_gpu_dtype as get_autocast_gpu_dtype
    from .amp.autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
    from .amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
    from .amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
    from .autograd import enable_grad as enable_grad
    from .autograd import inference_mode as inference_mode
    from .autograd import is_anomaly_enabled as is_anomaly_enabled
    from .autograd import is_grad_enabled as is_grad_enabled
    from .autograd import no_grad as no_grad
    from .autograd import set_grad_enabled as set_grad_enabled
    from .compiler import compile as compile
    from .func import vmap as vmap
    from ._quantized import dequantize as dequantize
    from ._quantized import int_repr as int_repr
    from ._quantized import q_per_channel_axis as q_per_channel_axis
    from ._quantized import q_per_channel_scales as q_per_channel_scales
    from ._quantized import q_per_channel_zero_points as q_per_channel_zero_points
    from ._quantized import q_scale as q_scale
    from ._quantized import q_zero_point as q_zero_point
    from ._quantized import quantize_per_channel as quantize_per_channel
    from ._quantized import quantize_per_tensor as quantize_per_tensor
    from ._quantized import quantize_per_tensor_dynamic as quantize_per_tensor_dynamic
    from .random import Generator as Generator
    from .random import default_generator as default_generator
    from .random import get_rng_state as get_rng_state
    from .random import initial_seed as initial_seed
    from .random import manual_seed as manual_seed
    from .random import seed as seed
    from .random import set_rng_state as set_rng_state
    from .serialization import load as load
    from .serialization import save as save
    from .sparse import sparse_coo_tensor as sparse_coo_tensor
    from .sparse import sparse_csr_tensor as sparse_csr_tensor
    from .sparse import spmm as spmm
    from ._compressed import sparse_bsc_tensor as sparse_bsc_tensor
    from ._compressed import sparse_bsr_tensor as sparse_bsr_tensor
    from ._compressed import sparse_compressed_tensor as sparse_compressed_tensor
    from ._compressed import sparse_csc_tensor as sparse_csc_tensor
    from .storage import TypedStorage as TypedStorage
    from .storage import UntypedStorage as UntypedStorage
    from ._ops.functions import *  # noqa: F403
    from ._ops.functions import _int_mm as _int_mm
    from ._torch_functions import repeat_interleave as repeat_interleave  # type: ignore[no-redef]
    from ._torch_functions import split as split  # type: ignore[no-redef]

    is_deterministic_algorithms_warn_only_enabled = (
        _settings.is_deterministic_algorithms_warn_only_enabled
    )
    BFloat16Storage = TypedStorage
    BoolStorage = TypedStorage
    ByteStorage = TypedStorage
    CharStorage = TypedStorage
    ComplexDoubleStorage = TypedStorage
    ComplexFloatStorage = TypedStorage
    DoubleStorage = TypedStorage
    FloatStorage = TypedStorage
    HalfStorage = TypedStorage
    IntStorage = TypedStorage
    LongStorage = TypedStorage
    ShortStorage = TypedStorage

__torch_version__ = "2.15.0"  # the PyTorch whose names and behaviour tt's are
MODULES = (
    "accelerator amp ao array_api autograd backends compiler cpu cuda distributed distributions "
    "errors export fft files func futures fx hub jit library linalg masked mps multiprocessing nested "
    "nn onnx ops optim overrides profiler quasirandom random return_types runtime safetensors "
    "serialization signal sparse special storage testing torch_version types utils version xpu"
)
# modules and functions that programs touch, private ones and former names
PRIVATE = (
    "_C __config__ _custom_ops _dynamo _functorch _higher_order_ops _inductor _subclasses "
    "_tensor_str _utils classes functional quantization"
).split()
CHECKS = (
    "_assert _assert_async _check _check_tensor_all _check_value _check_with _grouped_mm "
    "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _sample_dirichlet "
    "_shape_as_tensor _standard_gamma"
).split()
# module -> names of it that users find here
ELSEWHERE = {
    "_comparison": "allclose equal",
    "_constants": "e inf nan newaxis pi",
    "_create": "as_tensor asarray from_numpy frombuffer scalar_tensor tensor",
    "_dlpack": "from_dlpack",
    "_handles": "build_info get_num_threads set_num_threads",
    "_limits": "finfo iinfo",
    "_promotion": "can_cast promote_types result_type",
    "_settings": (
        "_assert as_torch are_deterministic_algorithms_enabled broadcast_shapes "
        "get_default_device "
        "get_default_dtype get_device_module get_float32_matmul_precision "
        "get_num_interop_threads is_deterministic_algorithms_warn_only_enabled is_inference "
        "is_inference_mode_enabled is_nonzero is_same_size is_signed is_storage "
        "is_warn_always_enabled numel set_default_device set_default_dtype "
        "set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision "
        "set_flush_denormal set_num_interop_threads set_printoptions set_warn_always typename "
        "use_deterministic_algorithms"
    ),
    "_tensor_facts": "is_complex is_floating_point",
    "_tensor_types": (
        "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor "
        "IntTensor LongTensor ShortTensor"
    ),
    "compiler": "compile",
    "amp": "autocast",
    "amp.autocast_mode": (
        "clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
        "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled"
    ),
    "autograd": (
        "enable_grad inference_mode is_anomaly_enabled is_grad_enabled no_grad set_grad_enabled"
    ),
    "func": "vmap",
    "random": (
        "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state"
    ),
    "serialization": "load save",
    "_torch_functions": "repeat_interleave split",
    "storage": (
        "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage "
        "ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage "
        "ShortStorage TypedStorage UntypedStorage"
    ),
    "_quantized": (
        "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points "
        "q_scale q_zero_point quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic"
    ),
    "sparse": "sparse_coo_tensor sparse_csr_tensor spmm",
    "_compressed": (
        "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_csc_tensor"
    ),
}
HOME = {name: module for module, names in ELSEWHERE.items() for name in names.split()}
OWN = (
    "Size Tensor TtError device dtype is_tensor jagged layout memory_format per_channel_affine "
    "per_channel_symmetric per_tensor_affine per_tensor_symmetric qscheme sparse_bsc sparse_bsr "
    "sparse_coo sparse_csc sparse_csr strided"
)
__all__ = sorted(
    {*MODULES.split(), *HOME, *_ops.PLACES["tt"].split(), *_dtype_names.__all__, *OWN.split()}
)

if not TYPE_CHECKING:

    def __getattr__(name):
        """Loads a module or a function when it is first used."""
        if name in MODULES.split() or name in PRIVATE:
            return import_module("." + name, __package__)
        if name in HOME:
            value = getattr(import_module("." + HOME[name], __package__), name)
        elif name in __all__:
            value = _ops.find("tt", name)
        else:
            value = None
            if name.startswith("_foreach_"):
                value = import_module("._foreach", __package__).make(name[len("_foreach_") :])
            elif name.startswith(("float8_", "qint", "quint")) or name in ("complex32", "chalf"):
                value = import_module("._absent", __package__).ABSENT_DTYPES.get(
                    name.replace("chalf", "complex32")
                )
            elif not name.startswith("_") or name in CHECKS:
                value = import_module("._torch_functions", __package__).find(name)
            if value is None:
                raise AttributeError(f"module 'tt' has no attribute '{name}'")
        globals()[name] = value
        return value

    def __dir__():
        return __all__


def is_tensor(x: Any) -> _bool:
    """Returns whether x is a Tensor."""
    return isinstance(x, Tensor)
