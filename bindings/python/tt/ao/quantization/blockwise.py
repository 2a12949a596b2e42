"""Weights in blocks of 32 or 256 numbers with scales, activations in floating point: quantize_,
with the arguments of torchao's, and the layers that it puts in place of Linear and Embedding."""
from __future__ import annotations

from typing import Callable, Literal, cast

from ..._ops._quant import BLOCKFORMAT, blockwise_embedding, blockwise_linear, quantize_blockwise
from ..._tensor import Tensor
from ...nn import Embedding, Linear
from ...nn.module import Module
from .dynamic import DynamicQuantizedLinear, Int8DynamicActivationInt8WeightConfig

Format = Literal["q8_0", "q4_0"]
# Of weights from a GGUF file, too.
PackedFormat = Literal[
    "q8_0",
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q2_k",
    "q3_k",
    "q4_k",
    "q5_k",
    "q6_k",
    "iq4_nl",
    "iq4_xs",
    "mxfp4",
]

BLOCK = 32
FORMATS = ("q8_0", "q4_0")


def _checked(format: str) -> PackedFormat:
    if format not in BLOCKFORMAT:
        raise ValueError(f"format is {format!r}: must be one of {tuple(BLOCKFORMAT)}")
    return cast(PackedFormat, format)


class BlockwiseWeightOnlyConfig:
    """Lets quantize_ pack weights in the format "q8_0", 8.5 bits a number, or "q4_0", 4.5 bits."""

    def __init__(self, format: Format = "q8_0") -> None:
        if format not in FORMATS:
            raise ValueError(f"format is {format!r}: must be one of {FORMATS}")
        self.format: Format = format

    def __repr__(self) -> str:
        return f"BlockwiseWeightOnlyConfig(format={self.format!r})"


class BlockwiseLinear(Module):
    """A Linear whose weight is packed: a buffer of uint8 with a row for each output.

    weight: (out_features, bytes of in_features numbers), of quantize_blockwise or a GGUF file.
    format: "q8_0", "q4_0", or any other type of a GGUF file that dequantize_blockwise takes.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, format: str = "q8_0") -> None:
        super().__init__()
        self.format = _checked(format)
        self.register_buffer("weight", weight)
        self.bias = bias

    @classmethod
    def from_float(cls, layer: Linear, format: Format = "q8_0") -> BlockwiseLinear:
        """Packs the weight of a Linear."""
        weight = quantize_blockwise(layer.weight.detach(), format)
        return cls(weight, layer.bias, format)

    def forward(self, x: Tensor) -> Tensor:
        return blockwise_linear(x, self.weight, self.bias, self.format)

    def extra_repr(self) -> str:
        return f"weight={tuple(self.weight.shape)}, format={self.format!r}"


class BlockwiseEmbedding(Module):
    """An Embedding whose weight is packed; its result is float32.

    weight: (num_embeddings, bytes of embedding_dim numbers), of quantize_blockwise or a GGUF file.
    format: as of BlockwiseLinear.
    """

    def __init__(self, weight: Tensor, format: str = "q8_0") -> None:
        super().__init__()
        self.format = _checked(format)
        self.register_buffer("weight", weight)

    @classmethod
    def from_float(cls, layer: Embedding, format: Format = "q8_0") -> BlockwiseEmbedding:
        """Packs the weight of an Embedding."""
        return cls(quantize_blockwise(layer.weight.detach(), format), format)

    def forward(self, indices: Tensor) -> Tensor:
        return blockwise_embedding(self.weight, indices, self.format)

    def extra_repr(self) -> str:
        return f"weight={tuple(self.weight.shape)}, format={self.format!r}"


def is_packable(module: Module, name: str = "") -> bool:
    """Whether quantize_ packs a module by default: a Linear, or an Embedding without max_norm,
    whose rows are whole blocks. name is ignored."""
    if type(module) is Linear:
        return module.weight.shape[-1] % BLOCK == 0
    if type(module) is Embedding:
        return module.max_norm is None and module.weight.shape[-1] % BLOCK == 0
    return False


def _is_linear(module: Module, name: str) -> bool:
    return type(module) is Linear


def _packed(
    layer: Linear | Embedding,
    config: BlockwiseWeightOnlyConfig | Int8DynamicActivationInt8WeightConfig,
) -> Module:
    if isinstance(config, Int8DynamicActivationInt8WeightConfig):
        if not isinstance(layer, Linear):
            raise TypeError(f"quantize_: {config!r} is for Linear, not for Embedding")
        return DynamicQuantizedLinear.from_float(layer)
    if isinstance(layer, Linear):
        return BlockwiseLinear.from_float(layer, config.format)
    return BlockwiseEmbedding.from_float(layer, config.format)


def quantize_(
    model: Module,
    config: BlockwiseWeightOnlyConfig | Int8DynamicActivationInt8WeightConfig,
    filter_fn: Callable[[Module, str], bool] | None = None,
) -> None:
    """Packs the weights of the Linear and Embedding modules below model, in place.

    filter_fn: called with each of these modules and its name, returns whether it is packed; by
    default is_packable, or every Linear for Int8DynamicActivationInt8WeightConfig.
    """
    dynamic = isinstance(config, Int8DynamicActivationInt8WeightConfig)
    chosen = filter_fn or (_is_linear if dynamic else is_packable)
    packed: dict[int, Module] = {}
    for prefix, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            path = f"{prefix}.{name}" if prefix else name
            if not isinstance(child, (Linear, Embedding)) or not chosen(child, path):
                continue
            if id(child) not in packed:
                packed[id(child)] = _packed(child, config)
            setattr(parent, name, packed[id(child)])
