"""Linear layers whose weight is int8 and whose input is quantised in each call, row by row."""
from __future__ import annotations

import copy
from typing import Any, Iterable

from ... import float32, int8, int32, uint8
from ..._absent import ABSENT_DTYPES
from ..._ops._quant import quantize_per_channel, quantized_linear
from ..._tensor import Tensor
from ..._types import dtype as DType
from ...autograd import no_grad
from ...errors import UnimplementedError
from ...nn import Linear
from ...nn.module import Module
from .fake_quantize import default_fake_quant, default_per_channel_weight_fake_quant
from .observer import EPS, PerChannelMinMaxObserver
from .qconfig import QConfig, _exchange

qint8 = ABSENT_DTYPES["qint8"]
# stands for the one way in which quantize_dynamic replaces a layer
default_dynamic_qconfig = QConfig(default_fake_quant, default_per_channel_weight_fake_quant)


class Int8DynamicActivationInt8WeightConfig:
    """Lets quantize_ pack Linear modules: int8 weights with a scale for each output, inputs as
    8-bit integers with a scale and a zero point for each row."""

    def __repr__(self) -> str:
        return "Int8DynamicActivationInt8WeightConfig()"


class DynamicQuantizedLinear(Module):
    """A Linear for inference in 8-bit integers, whose input gets its scales when it is called.

    weight: (out_features, in_features), int8. weight_scale: (out_features). bias: float32 or None.
    """

    def __init__(self, weight: Tensor, weight_scale: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("weight_scale", weight_scale)
        self.register_buffer("bias", bias)

    @classmethod
    def from_float(cls, layer: Linear) -> DynamicQuantizedLinear:
        """Quantises the weight of a Linear."""
        with no_grad():
            weight = layer.weight.detach().to(float32)
            observer = PerChannelMinMaxObserver(
                dtype=int8, symmetric=True, quant_min=-127, quant_max=127
            )
            observer(weight)
            scales, zeros = observer.calculate_qparams()
            integers = quantize_per_channel(weight, scales, zeros, 0, -127, 127, int8)
            bias = None if layer.bias is None else layer.bias.detach().to(float32)
            return cls(integers, scales.contiguous(), bias)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.detach().to(float32).reshape(-1, x.shape[-1])
        low, high = rows.amin(-1).clamp(max=0), rows.amax(-1).clamp(min=0)
        scale = ((high - low) * (1 / 255)).clamp(min=EPS)
        zero = (-(low * scale.reciprocal()).round()).to(int32)
        integers = quantize_per_channel(rows, scale, zero, 0, 0, 255, uint8)
        y = quantized_linear(integers, scale, zero, self.weight, self.weight_scale, self.bias)
        return y.reshape(*x.shape[:-1], self.weight.shape[0]).to(x.dtype)

    def extra_repr(self) -> str:
        out_features, in_features = self.weight.shape
        return f"in_features={in_features}, out_features={out_features}, dtype=int8"


def quantize_dynamic(
    model: Module,
    qconfig_spec: Iterable[type | str] | None = None,
    dtype: DType = qint8,
    mapping: None = None,
    inplace: bool = False,
) -> Module:
    """Replaces Linear modules by DynamicQuantizedLinear and returns the model.

    qconfig_spec: classes of modules, or names of modules below which Linear modules are replaced;
    by default all Linear modules. Of a dict, whose configurations are all taken for this one, the
    keys count. Other layers than Linear cannot be quantised.
    dtype: of the weights, qint8 or int8
    inplace: changes the model itself instead of a copy.
    """
    if dtype not in (qint8, int8) or mapping is not None:
        raise UnimplementedError("quantize_dynamic: only qint8 and no mapping are supported")
    spec: list[Any] = [Linear] if qconfig_spec is None else list(qconfig_spec)
    if isinstance(qconfig_spec, dict):
        spec = [entry for entry, config in qconfig_spec.items() if config is not None]
    for entry in spec:
        if not isinstance(entry, str) and entry is not Linear:
            raise UnimplementedError(f"quantize_dynamic: {entry!r} has no quantised layer")
    model = model if inplace else copy.deepcopy(model)
    names = [entry for entry in spec if isinstance(entry, str)]
    chosen = {
        id(module)
        for path, module in model.named_modules()
        if type(module) is Linear
        and (Linear in spec or any(f"{path}.".startswith(f"{name}.") for name in names))
    }

    def replace(module: Module) -> Module | None:
        if id(module) not in chosen or not isinstance(module, Linear):
            return None
        return DynamicQuantizedLinear.from_float(module)

    return _exchange(model, replace)
