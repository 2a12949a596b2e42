"""Gamma, Chi2, Beta, Dirichlet and StudentT."""
from __future__ import annotations

from math import inf, log, nan, pi
from typing import Any

from .. import _ops as ops
from .._create import as_tensor
from .._limits import finfo
from .._tensor import Tensor
from . import constraints
from ._gamma import standard_gamma
from .distribution import Distribution, broadcast_all
from .distribution import Shape

__all__ = ["Beta", "Chi2", "Dirichlet", "Gamma", "StudentT"]


def positive_part(drawn: Tensor) -> Tensor:
    """Clamps samples to at least the smallest positive normal number."""
    return drawn.clamp(min=finfo(drawn.dtype).tiny)


class Gamma(Distribution):
    """The gamma distribution with a concentration (shape) and a rate (inverse scale)."""

    has_rsample = True
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return positive_part(standard_gamma(self.concentration.expand(shape)) / self.rate)

    def log_prob(self, value: Any) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return ops.xlogy(a, rate) + ops.xlogy(a - 1, value) - rate * value - ops.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ops.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + ops.lgamma(a) + (1 - a) * ops.digamma(a)


class Chi2(Gamma):
    """The chi-squared distribution with df degrees of freedom."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast_all(df)
        super().__init__(0.5 * self.df, ops.full_like(self.df, 0.5), validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Chi2:
        return self._expanded(
            Chi2(self.df.expand(tuple(batch_shape)), self._validate_args), _instance
        )


class Dirichlet(Distribution):
    """The Dirichlet distribution, with concentrations along the last dim."""

    has_rsample = True
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("Dirichlet: concentration is 0-dim: must have at least 1 dim")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        interior = above / above.sum(-1, keepdim=True)
        peak = (self.concentration == self.concentration.amax(-1, keepdim=True)).to(interior.dtype)
        below = (self.concentration < 1).all(-1, keepdim=True)
        return ops.where(below, peak / peak.sum(-1, keepdim=True), interior)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = positive_part(standard_gamma(self.concentration.expand(shape)))
        return drawn / drawn.sum(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        density = ops.xlogy(a - 1, value).sum(-1)
        return density + ops.lgamma(a.sum(-1)) - ops.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (
            ops.lgamma(a).sum(-1)
            - ops.lgamma(total)
            - (k - total) * ops.digamma(total)
            - ((a - 1) * ops.digamma(a)).sum(-1)
        )


class Beta(Distribution):
    """The beta distribution on [0, 1] with two concentrations."""

    has_rsample = True
    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    @property
    def total(self) -> Tensor:
        """Returns the sum of both concentrations."""
        return self.concentration1 + self.concentration0

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / self.total

    @property
    def mode(self) -> Tensor:
        return self.both().mode[..., 0]

    @property
    def variance(self) -> Tensor:
        product = self.concentration1 * self.concentration0
        return product / (self.total**2 * (self.total + 1))

    def both(self) -> Dirichlet:
        """Returns the Dirichlet distribution of (value, 1 - value)."""
        both = ops.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.both().rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.both().log_prob(ops.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self.both().entropy()


class StudentT(Distribution):
    """Student's t-distribution with df degrees of freedom, shifted by loc and scaled by scale."""

    has_rsample = True
    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self.scale**2 * self.df / (self.df - 2)
        return variance.masked_fill(self.df <= 2, inf).masked_fill(self.df <= 1, nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = ops.randn(shape, dtype=self.df.dtype, device=self.df.device)
        z = 2 * positive_part(standard_gamma((0.5 * self.df).expand(shape)))
        return self.loc + self.scale * x * ops.rsqrt(z / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y = (value - self.loc) / self.scale
        df = self.df
        norm = self.scale.log() + 0.5 * df.log() + 0.5 * log(pi)
        norm = norm + ops.lgamma(0.5 * df) - ops.lgamma(0.5 * (df + 1))
        return -0.5 * (df + 1) * (y**2 / df).log1p() - norm

    def entropy(self) -> Tensor:
        df = self.df
        log_beta = ops.lgamma(0.5 * df) + 0.5 * log(pi) - ops.lgamma(0.5 * (df + 1))
        slope = ops.digamma(0.5 * (df + 1)) - ops.digamma(0.5 * df)
        return self.scale.log() + 0.5 * (df + 1) * slope + 0.5 * df.log() + log_beta
