"""Layers as calls of nn.functional, for inputs and modes that intercept functions: what C computes
by itself, their __torch_function__ would not see."""
from __future__ import annotations

import re
from inspect import Parameter, signature
from typing import Any, Callable

from .. import _ops
from .._interception import DisableTorchFunction
from .._tensor import Tensor

# Layers whose function has another name
FUNCTIONS = {
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "CTCLoss": "ctc_loss",
    "GaussianNLLLoss": "gaussian_nll_loss",
    "KLDivLoss": "kl_div",
    "LeakyReLU": "leaky_relu",
    "LPPool1d": "lp_pool1d",
    "LPPool2d": "lp_pool2d",
    "LPPool3d": "lp_pool3d",
    "MSELoss": "mse_loss",
    "MultiLabelMarginLoss": "multilabel_margin_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss",
    "NLLLoss": "nll_loss",
    "PoissonNLLLoss": "poisson_nll_loss",
    "RMSNorm": "rms_norm",
}
LEFT_OUT = {"generator", "out", "size_average", "reduce", "dtype", "_stacklevel"}


def function_of(layer: Any) -> Callable[..., Any] | None:
    """Returns the function of nn.functional that a layer computes, or None."""
    from . import functional

    name = layer._class
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    for candidate in (FUNCTIONS.get(name), snake, snake.replace("_loss", ""), name.lower()):
        if candidate in functional.__all__:
            return getattr(functional, candidate)
    return None


def forward(layer: Any, inputs: tuple[Any, ...]) -> Any:
    """Computes a layer by its function of nn.functional. Layers without one, such as LSTM, take
    tensors of subclasses as plain ones."""
    own = OWN.get(re.sub(r"\d", "", layer._class))
    if own is not None:
        return own(layer, *inputs)
    function = function_of(layer)
    if function is None:
        with DisableTorchFunction():
            return layer._forward(*inputs)
    if getattr(layer, "padding_mode", "zeros") != "zeros":
        inputs = (padded(layer, *inputs),)
    given = list(inputs)
    named, skipped = {}, False
    for p in list(signature(function).parameters.values())[len(inputs) :]:
        if p.name in LEFT_OUT or not hasattr(layer, p.name):
            skipped = True
            continue
        value = argument(layer, p.name)
        if not skipped and p.kind is not Parameter.KEYWORD_ONLY and p.name != "inplace":
            given.append(value)
        else:
            named[p.name] = value
    return function(*given, **named)


def argument(layer: Any, name: str) -> Any:
    if name == "padding" and getattr(layer, "padding_mode", "zeros") != "zeros":
        return 0  # padded() has done it
    return getattr(layer, name)


def padded(layer: Any, input: Tensor) -> Any:
    """Returns the input of a convolution, padded by its padding_mode."""
    from . import functional

    sides = [n for n in reversed(layer.padding) for _ in range(2)]
    return functional.pad(input, sides, mode=layer.padding_mode)


def batch_norm(layer: Any, input: Any) -> Any:
    from . import functional

    momentum = layer.momentum
    if layer.training and layer.track_running_stats:
        layer.num_batches_tracked.add_(1)
        if momentum is None:
            momentum = 1 / float(layer.num_batches_tracked)
    of_batch = layer.training or layer.running_mean is None
    updates = not layer.training or layer.track_running_stats
    return functional.batch_norm(
        input,
        layer.running_mean if updates else None,
        layer.running_var if updates else None,
        layer.weight,
        layer.bias,
        of_batch,
        momentum or 0.0,
        layer.eps,
    )


def instance_norm(layer: Any, input: Any) -> Any:
    from . import functional

    of_input = layer.training or not layer.track_running_stats
    statistics = layer.running_mean, layer.running_var
    return functional.instance_norm(
        input, *statistics, layer.weight, layer.bias, of_input, layer.momentum or 0.0, layer.eps
    )


def flatten(layer: Any, input: Any) -> Any:
    return input.flatten(layer.start_dim, layer.end_dim)


def pad(mode: Any) -> Callable[..., Any]:
    """Returns the forward of padding layers."""

    def forward(layer: Any, input: Any) -> Any:
        from . import functional

        return functional.pad(input, layer.padding, mode, getattr(layer, "value", None))

    return forward


def softmax_of_channels(layer: Any, input: Any) -> Any:
    return _ops.softmax(input, -3)


OWN: dict[str, Callable[..., Any]] = {
    "BatchNormd": batch_norm,
    "CircularPadd": pad("circular"),
    "ConstantPadd": pad("constant"),
    "Flatten": flatten,
    "InstanceNormd": instance_norm,
    "ReflectionPadd": pad("reflect"),
    "ReplicationPadd": pad("replicate"),
    "Softmaxd": softmax_of_channels,
    "ZeroPadd": pad("constant"),
}
