"""Training with fake quantisation and inference in 8-bit integers, with the names of
torch.ao.quantization: observers, FakeQuantize, QConfig, prepare_qat and convert. The modules that
convert creates compute in integers; their inputs and outputs are float32, so the rest of the model
is unchanged.

quantize_per_tensor and the related functions are those of torch.ao.quantization.fx._decomposed:
quantised values are plain integer tensors.

quantize_ packs only the weights, in blocks with a scale, or makes layers whose input is quantised
row by row in each call; its name and arguments are torchao's. quantize_dynamic is the latter by
torch.ao.quantization's name.
"""
from __future__ import annotations

from ..._ops._quant import (
    blockwise_embedding,
    blockwise_linear,
    dequantize_blockwise,
    dequantize_per_channel,
    dequantize_per_tensor,
    quantize_blockwise,
    quantize_per_channel,
    quantize_per_tensor,
    quantized_conv2d,
    quantized_linear,
)
from .blockwise import BlockwiseEmbedding, BlockwiseLinear, BlockwiseWeightOnlyConfig, quantize_
from .dynamic import (
    DynamicQuantizedLinear,
    DynamicQuantizedLSTM,
    Int8DynamicActivationInt8WeightConfig,
    default_dynamic_qconfig,
    quantize_dynamic,
)
from .fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    default_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    disable_fake_quant,
    disable_observer,
    enable_fake_quant,
    enable_observer,
)
from .modules import DeQuantStub, QATConv2d, QATLinear, QuantStub, QuantizedConv2d, QuantizedLinear
from .observer import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
)
from .qconfig import QConfig, convert, get_default_qat_qconfig, prepare_qat

__all__ = [
    "BlockwiseEmbedding",
    "BlockwiseLinear",
    "BlockwiseWeightOnlyConfig",
    "DeQuantStub",
    "DynamicQuantizedLSTM",
    "DynamicQuantizedLinear",
    "FakeQuantize",
    "FakeQuantizeBase",
    "Int8DynamicActivationInt8WeightConfig",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "QATConv2d",
    "QATLinear",
    "QuantStub",
    "QConfig",
    "QuantizedConv2d",
    "QuantizedLinear",
    "blockwise_embedding",
    "blockwise_linear",
    "convert",
    "default_dynamic_qconfig",
    "default_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_weight_fake_quant",
    "dequantize_blockwise",
    "dequantize_per_channel",
    "dequantize_per_tensor",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "get_default_qat_qconfig",
    "prepare_qat",
    "quantize_",
    "quantize_blockwise",
    "quantize_dynamic",
    "quantize_per_channel",
    "quantize_per_tensor",
    "quantized_conv2d",
    "quantized_linear",
]
