"""Initialisation of tensors in place, by the names of torch.nn.init."""
import math
import warnings

from .. import _ops
from ..autograd import no_grad

GAINS = {
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


def calculate_gain(nonlinearity, param=None):
    """The factor by which a nonlinearity wants its weights larger."""
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return GAINS[nonlinearity]


def fans(tensor):
    """(fan in, fan out) of a weight (out, in, …)."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


_calculate_fan_in_and_fan_out = fans  # what layers of one's own call


def filled(tensor, value):
    with no_grad():
        return tensor.copy_(value)


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal values within [a, b]: each that falls outside is drawn again, which leaves the truncated law."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )
    with no_grad():
        tensor.normal_(mean, std, generator=generator)
        while True:
            outside = (tensor < a) | (tensor > b)
            if not bool(outside.any()):
                return tensor
            again = _ops.empty_like(tensor).normal_(mean, std, generator=generator)
            tensor.copy_(_ops.where(outside, again, tensor))


def constant_(tensor, val):
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    return constant_(tensor, 1.0)


def zeros_(tensor):
    return constant_(tensor, 0.0)


def eye_(tensor):
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return filled(tensor, _ops.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor, groups=1):
    """The weight of a convolution that passes its input on."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    out = tensor.shape[0] // groups
    with no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(out, tensor.shape[1])):
                tensor[(g * out + d, d, *(s // 2 for s in tensor.shape[2:]))] = 1
    return tensor


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Glorot and Bengio, 2010: uniform within gain * sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Glorot and Bengio, 2010: normal with std gain * sqrt(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)


def kaiming_std(tensor, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return calculate_gain(nonlinearity, a) / math.sqrt(fans(tensor)[mode == "fan_out"])


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He et al., 2015: uniform within gain * sqrt(3 / fan)."""
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3) * kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He et al., 2015: normal with std gain / sqrt(fan)."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Saxe et al., 2013: rows (or columns) are orthogonal and of length gain; by modified Gram-Schmidt in float64, done twice."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        q = (
            _ops.empty(max(rows, columns), min(rows, columns))
            .normal_(0, 1, generator=generator)
            .double()
            .t()
            .contiguous()
        )
        for i in range(q.shape[0]):
            v = q[i]
            for _ in range(2):
                if i:
                    v = v - (q[:i] @ v) @ q[:i]
            q[i] = v / (v * v).sum().sqrt()
        q = q if rows <= columns else q.t()
        return tensor.copy_(q.reshape(tensor.shape).to(tensor.dtype) * gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Martens, 2010: normal values, a share of each column zero."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    zeros = math.ceil(sparsity * tensor.shape[0])
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(tensor.shape[1]):
            tensor[_ops.randperm(tensor.shape[0], generator=generator)[:zeros], column] = 0
    return tensor
