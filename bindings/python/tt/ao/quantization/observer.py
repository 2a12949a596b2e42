"""Observers: modules that record the range of their inputs and choose a scale and a zero point."""
from __future__ import annotations

from functools import partial
from typing import Any, Callable

from ... import float32, int8, int32, maximum, minimum, tensor, zeros
from ..._layout import qscheme
from ..._tensor import Tensor
from ..._types import dtype as DType
from ...autograd import no_grad
from ...nn.module import Module

EPS = 2.0**-23


class ObserverBase(Module):
    """Base class of observers. forward records the range of its input and returns it.

    quant_min, quant_max: range of the integers; by default that of dtype.
    symmetric: the zero point is 0, or the middle of the range if dtype is unsigned.
    ch_axis: the dimension of the channels, each of which has a scale; None: one scale.
    qscheme: PyTorch's argument for the same: such as tt.per_tensor_symmetric.
    """

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        dtype: DType = int8,
        quant_min: int | None = None,
        quant_max: int | None = None,
        symmetric: bool = False,
        ch_axis: int | None = None,
        eps: float = EPS,
        qscheme: qscheme | None = None,
    ) -> None:
        super().__init__()
        if qscheme is not None:
            symmetric = qscheme.name.endswith("symmetric")
            if (ch_axis is None) != qscheme.name.startswith("per_tensor"):
                raise ValueError(f"{type(self).__name__}: qscheme {qscheme} does not fit ch_axis")
        low, high = (-128, 127) if dtype.is_signed else (0, 255)
        self.dtype = dtype
        self.quant_min = low if quant_min is None else quant_min
        self.quant_max = high if quant_max is None else quant_max
        self.symmetric = symmetric
        self.ch_axis = ch_axis
        self.eps = eps
        self.register_buffer("min_val", tensor([], dtype=float32))
        self.register_buffer("max_val", tensor([], dtype=float32))

    @classmethod
    def with_args(cls, **kwargs: Any) -> Callable[[], ObserverBase]:
        """Returns a constructor that passes these arguments."""
        return partial(cls, **kwargs)

    def update(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Combines the recorded range with that of new values."""
        return minimum(self.min_val, low), maximum(self.max_val, high)

    def forward(self, x: Tensor) -> Tensor:
        if not x.numel():
            return x
        with no_grad():
            values = x.detach().to(float32)
            if self.ch_axis is None:
                low, high = values.min(), values.max()
            else:
                rows = values.movedim(self.ch_axis, 0).flatten(1)
                low, high = rows.amin(1), rows.amax(1)
            if self.min_val.numel():
                low, high = self.update(low, high)
            self.min_val, self.max_val = low, high
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Returns scale (float32) and zero point (int32): one element, or one per channel.

        The range always includes 0, so that 0 is represented exactly."""
        if not self.min_val.numel():
            return tensor([1.0]), zeros(1, dtype=int32)
        low = self.min_val.clamp(max=0).reshape(-1)
        high = self.max_val.clamp(min=0).reshape(-1)
        steps = self.quant_max - self.quant_min
        if self.symmetric:
            scale = (maximum(-low, high) / (steps / 2)).clamp(min=self.eps)
            middle = 0 if self.quant_min < 0 else (self.quant_min + self.quant_max + 1) // 2
            return scale, (scale * 0 + middle).to(int32)
        scale = ((high - low) / steps).clamp(min=self.eps)
        zero = (self.quant_min - (low / scale).round()).clamp(self.quant_min, self.quant_max)
        return scale, zero.to(int32)


class MinMaxObserver(ObserverBase):
    """Records the minimum and maximum of all values so far."""


class PerChannelMinMaxObserver(ObserverBase):
    """Records the minimum and maximum of each channel so far."""

    def __init__(self, ch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(ch_axis=ch_axis, **kwargs)


class MovingAverageMinMaxObserver(ObserverBase):
    """Records moving averages of the minimum and maximum of each batch."""

    def __init__(self, averaging_constant: float = 0.01, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.averaging_constant = averaging_constant

    def update(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        c = self.averaging_constant
        return self.min_val + c * (low - self.min_val), self.max_val + c * (high - self.max_val)
