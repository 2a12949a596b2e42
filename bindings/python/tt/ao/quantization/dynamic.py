"""Linear and LSTM layers whose weights are int8 and whose inputs are quantised in each call, row
by row."""
from __future__ import annotations

import copy
from typing import Any, Iterable

from ... import _ops as ops
from ... import float32, int8, int32, uint8
from ..._absent import ABSENT_DTYPES
from ..._ops._quant import quantize_per_channel, quantized_linear
from ..._tensor import Tensor
from ..._types import dtype as DType
from ...autograd import no_grad
from ...errors import ShapeError, UnimplementedError
from ...nn import LSTM, Linear, ModuleList
from ...nn.functional import dropout
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
        return cls.of(layer.weight, layer.bias)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> DynamicQuantizedLinear:
        """Quantises a weight of shape (out_features, in_features)."""
        with no_grad():
            weight = weight.detach().to(float32)
            observer = PerChannelMinMaxObserver(
                dtype=int8, symmetric=True, quant_min=-127, quant_max=127
            )
            observer(weight)
            scales, zeros = observer.calculate_qparams()
            integers = quantize_per_channel(weight, scales, zeros, 0, -127, 127, int8)
            bias = None if bias is None else bias.detach().to(float32)
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


class DynamicQuantizedLSTM(Module):
    """An LSTM for inference whose products are those of DynamicQuantizedLinear: one of the inputs
    of all steps, and one of the hidden state in each step.

    input_products, hidden_products: by layer, and by direction within a layer.
    """

    def __init__(self, layer: LSTM) -> None:
        super().__init__()
        if layer.proj_size:
            raise UnimplementedError(
                f"quantize_dynamic: an LSTM has proj_size {layer.proj_size}: must be 0"
            )
        self.input_size, self.hidden_size = layer.input_size, layer.hidden_size
        self.num_layers, self.bias = layer.num_layers, layer.bias
        self.batch_first, self.dropout = layer.batch_first, layer.dropout
        self.bidirectional = layer.bidirectional
        self.input_products, self.hidden_products = ModuleList(), ModuleList()
        for weights in layer.all_weights:
            biases: list[Any] = [None, None]
            if self.bias:
                biases = weights[2:]
            self.input_products.append(DynamicQuantizedLinear.of(weights[0], biases[0]))
            self.hidden_products.append(DynamicQuantizedLinear.of(weights[1], biases[1]))

    @classmethod
    def from_float(cls, layer: LSTM) -> DynamicQuantizedLSTM:
        """Quantises the weights of an LSTM."""
        return cls(layer)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the output and the last states, with the shapes of LSTM's."""
        if not isinstance(input, Tensor):
            raise UnimplementedError("DynamicQuantizedLSTM: input must be a Tensor: pad sequences")
        batched = input.ndim == 3
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"DynamicQuantizedLSTM: input is {list(input.shape)}: must have 2 or 3 dimensions, "
                f"the last of size {self.input_size}"
            )
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        if len(x) == 0:
            raise ShapeError("DynamicQuantizedLSTM: input must have at least one step")
        directions = 2 if self.bidirectional else 1
        shape = (self.num_layers * directions, x.shape[1], self.hidden_size)
        h, c = (x.new_zeros(shape), x.new_zeros(shape)) if hx is None else hx
        if hx is not None:
            given = shape if batched else (shape[0], shape[2])
            check_shape("h_0", h, given)
            check_shape("c_0", c, given)
        h, c = h.detach().reshape(shape), c.detach().reshape(shape)
        last_h: list[Tensor] = []
        last_c: list[Tensor] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                k = layer * directions + direction
                steps, h_k, c_k = self._run(k, x, h[k], c[k], reverse=direction == 1)
                outputs.append(steps)
                last_h.append(h_k)
                last_c.append(c_k)
            x = ops.cat(outputs, -1)
            if self.dropout and layer + 1 < self.num_layers:
                x = dropout(x, self.dropout, self.training)
        if not batched:
            return x[:, 0], (ops.stack(last_h)[:, 0], ops.stack(last_c)[:, 0])
        states = (ops.stack(last_h), ops.stack(last_c))
        return (x.transpose(0, 1) if self.batch_first else x), states

    def _run(
        self, k: int, x: Tensor, h: Tensor, c: Tensor, reverse: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the outputs of one direction of a layer, and its last states."""
        of_inputs = self.input_products[k](x)
        outputs: list[Tensor] = []
        for t in reversed(range(len(x))) if reverse else range(len(x)):
            gates = of_inputs[t] + self.hidden_products[k](h)
            i, f, g, o = gates.chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            outputs.append(h)
        if reverse:
            outputs.reverse()
        return ops.stack(outputs), h, c

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("num_layers", 1), ("bias", True), ("batch_first", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text + (", bidirectional=True" if self.bidirectional else "")


def check_shape(name: str, state: Tensor, shape: tuple[int, ...]) -> None:
    """Raises ShapeError unless a state of DynamicQuantizedLSTM has the shape."""
    if tuple(state.shape) != shape:
        raise ShapeError(
            f"DynamicQuantizedLSTM: {name} is {list(state.shape)}: must be {list(shape)}"
        )


QUANTIZED: dict[type, Any] = {Linear: DynamicQuantizedLinear, LSTM: DynamicQuantizedLSTM}


def quantize_dynamic(
    model: Module,
    qconfig_spec: Iterable[type | str] | None = None,
    dtype: DType = qint8,
    mapping: None = None,
    inplace: bool = False,
) -> Module:
    """Replaces Linear and LSTM modules by quantised ones and returns the model.

    qconfig_spec: classes of modules, or names of modules below which both are replaced; by default
    all of both. Of a dict, whose configurations are all taken for this one, the keys count. Other
    layers cannot be quantised.
    dtype: of the weights, qint8 or int8
    inplace: changes the model itself instead of a copy.
    """
    if dtype not in (qint8, int8) or mapping is not None:
        raise UnimplementedError("quantize_dynamic: only qint8 and no mapping are supported")
    spec: list[Any] = list(QUANTIZED if qconfig_spec is None else qconfig_spec)
    if isinstance(qconfig_spec, dict):
        spec = [entry for entry, config in qconfig_spec.items() if config is not None]
    for entry in spec:
        if not isinstance(entry, str) and entry not in QUANTIZED:
            raise UnimplementedError(f"quantize_dynamic: {entry!r} has no quantised layer")
    model = model if inplace else copy.deepcopy(model)
    names = [entry for entry in spec if isinstance(entry, str)]
    chosen = {
        id(module)
        for path, module in model.named_modules()
        if type(module) in QUANTIZED
        and (type(module) in spec or any(f"{path}.".startswith(f"{name}.") for name in names))
    }

    def replace(module: Module) -> Module | None:
        if id(module) not in chosen:
            return None
        return QUANTIZED[type(module)].from_float(module)

    return _exchange(model, replace)
