"""The exponential distribution."""
from __future__ import annotations

from typing import Any

from .. import _ops as ops
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .distribution import Shape

__all__ = ["Exponential"]


class Exponential(Distribution):
    """The exponential distribution with a rate parameter."""

    has_rsample = True
    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        return self.rate**-2

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = ops.empty(shape, dtype=self.rate.dtype, device=self.rate.device).exponential_()
        return drawn / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()
