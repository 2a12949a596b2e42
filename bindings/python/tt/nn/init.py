"""Initialisation of tensors in place, with the API of torch.nn.init.

Every function changes `tensor` without recording it, and returns it. generator: the source of
random numbers, by default this thread's.
"""
from __future__ import annotations

import math
import warnings
from functools import wraps
from typing import Any, Callable

from .. import _ops
from .._interception import overridable
from .._tensor import Tensor
from ..autograd import no_grad
from ..random import Generator

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

GAINS: dict[str, float] = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
    "sigmoid": 1,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the recommended gain of initial weights before a nonlinearity.

    param: the negative_slope of "leaky_relu", by default 0.01.
    """
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """Returns (fan_in, fan_out) of a weight of shape (out, in, …)."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


_calculate_fan_in_and_fan_out = fans  # PyTorch's name, which users' layers call


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """Returns the fan that mode names: "fan_in" or "fan_out"."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"_calculate_correct_fan: mode is {mode!r}: must be 'fan_in' or 'fan_out'")
    return fans(tensor)[mode.lower() == "fan_out"]


@overridable
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with values uniform in [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@overridable
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with normal values."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


@overridable
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills with normal values truncated to [a, b], by the inverse of their distribution function:
    values at its ends are where [a, b] is far from the mean."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    low, high = (math.erf((end - mean) / (std * math.sqrt(2))) for end in (a, b))
    with no_grad():
        tensor.uniform_(low, high, generator=generator).erfinv_()
        return tensor.mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)


@overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    with no_grad():
        return tensor.fill_(val)


@overridable
def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1."""
    return constant_(tensor, 1.0)


@overridable
def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0."""
    return constant_(tensor, 0.0)


@overridable
def eye_(tensor: Tensor) -> Tensor:
    """Fills a 2-D tensor with the identity: 1 on the diagonal, 0 elsewhere."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    with no_grad():
        return tensor.copy_(_ops.eye(rows, columns, dtype=tensor.dtype, device=tensor.device))


@overridable
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills the weight of a convolution (3 to 5 dimensions) so that it returns its input."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    out = tensor.shape[0] // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(out, tensor.shape[1])):
                tensor[(g * out + d, d, *centre)] = 1
    return tensor


@overridable
def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with values uniform within gain * sqrt(6 / (fan_in + fan_out)): Glorot and Bengio,
    2010."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@overridable
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with normal values of std gain * sqrt(2 / (fan_in + fan_out)): Glorot and Bengio,
    2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)


def kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """Returns gain / sqrt(fan). mode: "fan_in" or "fan_out"."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = fans(tensor)
    fan = fan_in if mode == "fan_in" else fan_out
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills with values uniform within gain * sqrt(3 / fan): He et al., 2015.

    a: the negative_slope of leaky_relu. mode: "fan_in" or "fan_out", the fan that is used.
    """
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3) * kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@overridable
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills with normal values of std gain / sqrt(fan): He et al., 2015.

    a: the negative_slope of leaky_relu. mode: "fan_in" or "fan_out", the fan that is used.
    """
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, kaiming_std(tensor, a, mode, nonlinearity), generator)


@overridable
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fills with orthogonal rows, or columns if there are fewer, of norm gain: Saxe et al., 2013.

    Flattens all dimensions but the first. Applies modified Gram-Schmidt in float64 twice.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        q = _ops.empty(max(rows, columns), min(rows, columns))
        q = q.normal_(0, 1, generator=generator).double().t().contiguous()
        for i in range(q.shape[0]):
            v = q[i]
            for _ in range(2):
                if i:
                    v = v - (q[:i] @ v) @ q[:i]
            q[i] = v / (v * v).sum().sqrt()
        q = q if rows <= columns else q.t()
        return tensor.copy_(q.reshape(tensor.shape).to(tensor.dtype) * gain)


@overridable
def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fills a 2-D tensor with normal values and the fraction `sparsity` of each column with 0:
    Martens, 2010."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[_ops.randperm(rows, generator=generator)[:zeros], column] = 0
    return tensor


# ---- former names ----


def deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns the function under its former name, which has no trailing underscore."""
    name = function.__name__

    @wraps(function)
    def former(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"nn.init.{name[:-1]} is deprecated: use nn.init.{name}", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    former.__name__ = former.__qualname__ = name[:-1]
    return former


uniform = deprecated(uniform_)
normal = deprecated(normal_)
constant = deprecated(constant_)
eye = deprecated(eye_)
dirac = deprecated(dirac_)
xavier_uniform = deprecated(xavier_uniform_)
xavier_normal = deprecated(xavier_normal_)
kaiming_uniform = deprecated(kaiming_uniform_)
kaiming_normal = deprecated(kaiming_normal_)
orthogonal = deprecated(orthogonal_)
sparse = deprecated(sparse_)


# ---- PyTorch's helpers, which users' initializations call ----


def _no_grad_uniform_(
    tensor: Tensor, a: float, b: float, generator: Generator | None = None
) -> Tensor:
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(
    tensor: Tensor, mean: float, std: float, generator: Generator | None = None
) -> Tensor:
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None = None
) -> Tensor:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return zeros_(tensor)


def __dir__() -> list[str]:
    return __all__
