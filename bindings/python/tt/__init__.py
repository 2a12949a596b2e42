"""tt: tensors, gradients and neural networks over libtt. Names and conventions are PyTorch's."""
from . import _lib, _types, errors
from . import _tensor
from . import _convert, _ops
from ._lib import VERSION as __version__
from ._lib import build_info
from .errors import TtError

_tensor.ops = _ops

from . import _operators, autograd, linalg, nn, optim  # noqa: E402  (they need the operators in place)
from ._create import arange, as_tensor, from_numpy, frombuffer, scalar_tensor, tensor  # noqa: E402
from ._operators import Tensor  # noqa: E402
from ._functions import einsum, linspace, nonzero, norm, randint, randint_like, std, unique, var, var_mean  # noqa: E402
from ._types import Size, device, dtype, memory_format  # noqa: E402
from .autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled  # noqa: E402
from .random import Generator, default_generator, manual_seed  # noqa: E402

clone = Tensor.clone
globals().update({name: function for name, function in _ops.PLACES["tt"].items() if name not in globals()})
globals().update({name: getattr(_types, name) for name in (
    "bool", "uint8", "int8", "int16", "short", "int32", "int", "int64", "long", "float16", "half", "bfloat16", "float32", "float", "float64",
    "double", "complex64", "cfloat", "complex128", "cdouble", "contiguous_format", "preserve_format", "channels_last",
    "channels_last_3d")})


def is_tensor(x):
    return isinstance(x, Tensor)


def get_default_dtype():
    """Of floating numbers without a dtype."""
    return _types.float32


def set_num_threads(n):
    """How many threads operators may use."""
    if _lib.lib.tt_set_num_threads(_lib.local.ctx, _convert.integer(n, "set_num_threads", "n")):
        _lib.fail()


def get_num_threads():
    return _lib.quick.tt_num_threads(_lib.local.ctx)

