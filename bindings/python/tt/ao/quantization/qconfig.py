"""QConfig, and functions that replace layers: prepare_qat before training, convert after it."""
from __future__ import annotations

import copy
from typing import Callable, NamedTuple

from ...nn import Conv2d, Linear
from ...nn.module import Module
from .fake_quantize import default_fake_quant, default_per_channel_weight_fake_quant
from .fake_quantize import FakeQuantize
from .modules import QATConv2d, QATLayer, QATLinear, QuantizedConv2d, QuantizedLinear


class QConfig(NamedTuple):
    """The constructors of FakeQuantize for inputs and for weights."""

    activation: Callable[[], FakeQuantize]
    weight: Callable[[], FakeQuantize]


QAT = {Linear: QATLinear, Conv2d: QATConv2d}
QUANTIZED = {QATLinear: QuantizedLinear, QATConv2d: QuantizedConv2d}


def get_default_qat_qconfig(backend: str = "x86") -> QConfig:
    """Returns the default QConfig: uint8 inputs with one scale from a moving average, int8 weights
    with a scale for each output. backend is ignored."""
    return QConfig(default_fake_quant, default_per_channel_weight_fake_quant)


def _exchange(model: Module, replace: Callable[[Module], Module | None]) -> Module:
    """Replaces modules of a tree. A module that occurs twice is replaced by one module."""
    replacements: dict[int, Module | None] = {}

    def of(module: Module) -> Module | None:
        if id(module) not in replacements:
            replacements[id(module)] = replace(module)
        return replacements[id(module)]

    whole = of(model)
    if whole is not None:
        return whole
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            new = of(child)
            if new is not None:
                setattr(parent, name, new)
    return model


def prepare_qat(model: Module, qconfig: QConfig | None = None, inplace: bool = False) -> Module:
    """Replaces each Linear and Conv2d by a layer that rounds its input and weight in training.

    qconfig: by default model.qconfig, or get_default_qat_qconfig() if the model has none.
    inplace: changes the model itself instead of a copy.
    """
    config = qconfig or getattr(model, "qconfig", None) or get_default_qat_qconfig()

    def replace(module: Module) -> Module | None:
        layer_class = QAT.get(type(module))
        return None if layer_class is None else layer_class(module, config)

    return _exchange(model if inplace else copy.deepcopy(model), replace)


def convert(model: Module, inplace: bool = False) -> Module:
    """Replaces each layer that prepare_qat created by one that computes in 8-bit integers.

    inplace: changes the model itself instead of a copy.
    """

    def replace(module: Module) -> Module | None:
        layer_class = QUANTIZED.get(type(module))
        if layer_class is None or not isinstance(module, QATLayer):
            return None
        return layer_class(module)

    return _exchange(model if inplace else copy.deepcopy(model), replace).eval()
