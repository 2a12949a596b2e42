"""FakeQuantize: rounds to a quantised grid whose parameters an observer chooses."""
from __future__ import annotations

from functools import partial
from typing import Any, Callable

from ... import int8, int32, tensor, uint8, zeros
from ..._ops._quant import fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine
from ..._tensor import Tensor
from ...nn.module import Module
from .observer import MovingAverageMinMaxObserver, ObserverBase, PerChannelMinMaxObserver


class LatestPerChannelObserver(PerChannelMinMaxObserver):
    """Records the range of the latest values only, for weights, which change in training."""

    def update(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return low, high


class FakeQuantizeBase(Module):
    """Base class of modules that observe their input and round it. Its subclasses define forward
    and calculate_qparams."""

    def __init__(self) -> None:
        super().__init__()
        self.observer_enabled = True
        self.fake_quant_enabled = True

    @classmethod
    def with_args(cls, **kwargs: Any) -> Callable[[], Any]:
        """Returns a constructor that passes these arguments."""
        return partial(cls, **kwargs)

    def enable_observer(self, enabled: bool = True) -> None:
        """Sets whether the observer updates scale and zero point."""
        self.observer_enabled = enabled

    def disable_observer(self) -> None:
        """Keeps scale and zero point as they are."""
        self.observer_enabled = False

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Sets whether forward rounds."""
        self.fake_quant_enabled = enabled

    def disable_fake_quant(self) -> None:
        """Makes forward return its input."""
        self.fake_quant_enabled = False


class FakeQuantize(FakeQuantizeBase):
    """Rounds its input to values that the quantised integers represent. Gradients pass unchanged
    where the input is not clamped. While enabled, the observer updates scale and zero point.

    observer: class or constructor of the observer, which is called with the other arguments.
    """

    def __init__(
        self, observer: Callable[..., ObserverBase] = MovingAverageMinMaxObserver, **kwargs: Any
    ) -> None:
        super().__init__()
        self.activation_post_process = observer(**kwargs)
        self.register_buffer("scale", tensor([1.0]))
        self.register_buffer("zero_point", zeros(1, dtype=int32))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Returns the observer's scale and zero point."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, x: Tensor) -> Tensor:
        observer = self.activation_post_process
        if self.observer_enabled:
            observer(x)
            self.scale, self.zero_point = observer.calculate_qparams()
        if not self.fake_quant_enabled:
            return x
        low, high = observer.quant_min, observer.quant_max
        if observer.ch_axis is None:
            return fake_quantize_per_tensor_affine(x, self.scale, self.zero_point, low, high)
        return fake_quantize_per_channel_affine(
            x, self.scale, self.zero_point, observer.ch_axis, low, high
        )


default_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, dtype=uint8)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, dtype=int8, symmetric=True, averaging_constant=1.0
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=LatestPerChannelObserver, dtype=int8, symmetric=True
)


def enable_observer(module: Module) -> None:
    """For Module.apply: enables the observer, which updates scale and zero point."""
    if isinstance(module, FakeQuantizeBase):
        module.observer_enabled = True


def disable_observer(module: Module) -> None:
    """For Module.apply: disables the observer; scale and zero point no longer change."""
    if isinstance(module, FakeQuantizeBase):
        module.observer_enabled = False


def enable_fake_quant(module: Module) -> None:
    """For Module.apply: enables rounding."""
    if isinstance(module, FakeQuantizeBase):
        module.fake_quant_enabled = True


def disable_fake_quant(module: Module) -> None:
    """For Module.apply: disables rounding."""
    if isinstance(module, FakeQuantizeBase):
        module.fake_quant_enabled = False
