"""The Laplace distribution."""
from __future__ import annotations

from typing import Any

from .. import _ops as ops
from .._limits import finfo
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .distribution import Shape

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution with mean loc and a scale."""

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale**2

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = ops.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        eps = finfo(self.loc.dtype).eps
        u = (eps - 1) + drawn * (2 - eps)  # without -1, whose logarithm is infinite
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * (-2 * away.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
