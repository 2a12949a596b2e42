"""The generalized Pareto distribution."""
from __future__ import annotations

from math import inf, nan
from typing import Any

from .. import _ops as ops
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .distribution import Shape

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution: values from loc, with a scale and a concentration.

    concentration: > 0 has a heavy tail, 0 is exponential, < 0 ends at loc - scale / concentration.
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        c = self.concentration
        end = (self.loc - self.scale / c).masked_fill(c >= 0, inf)
        return constraints.interval(self.loc, end)

    def _concentration(self) -> tuple[Tensor, Tensor]:
        """Returns where the concentration is 0, and the concentration with 1 there."""
        is_zero = self.concentration.abs() <= 1e-8
        return is_zero, self.concentration.masked_fill(is_zero, 1)

    @property
    def mean(self) -> Tensor:
        heavy = self.concentration >= 1
        mean = self.loc + self.scale / (1 - self.concentration.masked_fill(heavy, 0))
        return mean.masked_fill(heavy, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        heavy = self.concentration >= 0.5
        c = self.concentration.masked_fill(heavy, 0)
        variance = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return variance.masked_fill(heavy, nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(ops.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        is_zero, c = self._concentration()
        z = (value - self.loc) / self.scale
        power = 1 / c + 1
        fall = (power * (c * z).log1p()).masked_fill(power == 0, 0)  # 0 * log(0) at the end
        return -self.scale.log() - ops.where(is_zero, z, fall)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Returns log(1 - cdf(value))."""
        self._validate_sample(value)
        is_zero, c = self._concentration()
        z = (value - self.loc) / self.scale
        return ops.where(is_zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Returns log(cdf(value))."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, c = self._concentration()
        logu = (-value).log1p()
        heavy = self.loc + self.scale / c * (-c * logu).expm1()
        return ops.where(is_zero, self.loc - self.scale * logu, heavy)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
