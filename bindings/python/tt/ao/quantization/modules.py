"""The layers of quantised models: training layers round weight and input, inference layers
compute in integers."""
from __future__ import annotations

from typing import Any

import tt

from ... import float32, int8
from ..._ops._quant import (
    quantize_per_channel,
    quantize_per_tensor,
    quantized_conv2d,
    quantized_linear,
)
from ..._tensor import Tensor
from ..._types import dtype as DType
from ...autograd import no_grad
from ...nn import functional as F
from ...nn.module import Module


class QATLayer(Module):
    """Base class of the training layers. It shares the parameters of the layer that it replaces."""

    def __init__(self, layer: Any, qconfig: tt.ao.quantization.QConfig) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.activation_fake_quant = qconfig.activation()
        self.weight_fake_quant = qconfig.weight()


class QATLinear(QATLayer):
    """A Linear for training whose input and weight are rounded."""

    def __init__(self, layer: tt.nn.Linear, qconfig: tt.ao.quantization.QConfig) -> None:
        super().__init__(layer, qconfig)

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation_fake_quant(x)
        return F.linear(x, self.weight_fake_quant(self.weight), self.bias)


class QATConv2d(QATLayer):
    """A Conv2d for training whose input and weight are rounded."""

    def __init__(self, layer: tt.nn.Conv2d, qconfig: tt.ao.quantization.QConfig) -> None:
        super().__init__(layer, qconfig)
        if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
            raise ValueError("QATConv2d: padding must be numbers of zeros")
        self.stride, self.padding = layer.stride, layer.padding
        self.dilation, self.groups = layer.dilation, layer.groups

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation_fake_quant(x)
        weight = self.weight_fake_quant(self.weight)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class QuantizedLayer(Module):
    """Base class of the inference layers. It has an int8 weight with a scale for each output, and
    the scale and zero point of the input, all computed from the training layer."""

    scale: float
    zero_point: int
    dtype: DType

    def __init__(self, layer: QATLayer) -> None:
        super().__init__()
        activation = layer.activation_fake_quant
        observer = activation.activation_post_process
        self.scale, self.zero_point = float(activation.scale), int(activation.zero_point)
        self.dtype = observer.dtype
        self.quant_min, self.quant_max = observer.quant_min, observer.quant_max
        rule = layer.weight_fake_quant.activation_post_process
        scales, zeros = layer.weight_fake_quant.scale, layer.weight_fake_quant.zero_point
        if rule.dtype is not int8 or bool((zeros != 0).any()):
            raise ValueError("convert: weights must be int8 with a zero point of 0")
        with no_grad():
            weight = layer.weight.detach().to(float32)
            if rule.ch_axis is None:
                scales, zeros = scales.expand(weight.shape[0]), zeros.expand(weight.shape[0])
            integers = quantize_per_channel(
                weight, scales, zeros, 0, rule.quant_min, rule.quant_max, int8
            )
        self.register_buffer("weight", integers)
        self.register_buffer("weight_scale", scales.contiguous())
        bias = layer.bias
        self.register_buffer("bias", None if bias is None else bias.detach().to(float32))

    def quantize(self, x: Tensor) -> Tensor:
        """Returns the quantised input."""
        return quantize_per_tensor(
            x, self.scale, self.zero_point, self.quant_min, self.quant_max, self.dtype
        )


class QuantizedLinear(QuantizedLayer):
    """A Linear for inference that computes in 8-bit integers."""

    def __init__(self, layer: QATLinear) -> None:
        super().__init__(layer)
        scale, zero = layer.activation_fake_quant.scale, layer.activation_fake_quant.zero_point
        self.register_buffer("input_scale", scale)
        self.register_buffer("input_zero_point", zero)

    def forward(self, x: Tensor) -> Tensor:
        return quantized_linear(
            self.quantize(x),
            self.input_scale,
            self.input_zero_point,
            self.weight,
            self.weight_scale,
            self.bias,
        )


class QuantizedConv2d(QuantizedLayer):
    """A Conv2d for inference that computes in 8-bit integers."""

    def __init__(self, layer: QATConv2d) -> None:
        super().__init__(layer)
        self.stride, self.padding = layer.stride, layer.padding
        self.dilation, self.groups = layer.dilation, layer.groups

    def forward(self, x: Tensor) -> Tensor:
        return quantized_conv2d(
            self.quantize(x),
            self.scale,
            self.zero_point,
            self.weight,
            self.weight_scale,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )


class QuantStub(Module):
    """Returns its input: marks where PyTorch's static quantization begins, which tt does not
    have."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """Returns its input: marks where static quantization ends."""
