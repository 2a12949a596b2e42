"""Cauchy, HalfCauchy, HalfNormal, Gumbel, Pareto and Weibull."""
from __future__ import annotations

from math import inf, log, nan, pi, sqrt
from typing import Any

from .. import _ops as ops
from .._limits import finfo
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .distribution import Shape
from .normal import Normal

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "HalfNormal", "Pareto", "Weibull"]
EULER = 0.57721566490153286060


def uniform(like: Tensor, shape: Any) -> Tensor:
    """Draws from the open interval (0, 1)."""
    eps = finfo(like.dtype).eps
    u = ops.rand(shape, dtype=like.dtype, device=like.device)
    return u.clamp(finfo(like.dtype).tiny, 1 - eps)


class Cauchy(Distribution):
    """The Cauchy distribution with median loc and half width at half maximum scale."""

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return ops.full_like(self.loc, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return ops.full_like(self.loc, inf)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        u = uniform(self.loc, self._extended_shape(sample_shape))
        return self.loc + self.scale * (pi * (u - 0.5)).tan()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -log(pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return log(4 * pi) + self.scale.log()


class HalfOfReals(Distribution):
    """Base class of distributions of |x|, where x has a distribution symmetric around 0."""

    has_rsample = True
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def base_dist(self) -> Any:
        """Returns the symmetric distribution."""
        raise NotImplementedError(type(self).__name__)

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.scale)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (self.base_dist.log_prob(value) + log(2)).masked_fill(value < 0, -inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - log(2)


class HalfNormal(HalfOfReals):
    """The distribution of |x|, where x ~ Normal(0, scale)."""

    @property
    def base_dist(self) -> Normal:
        return Normal(ops.zeros_like(self.scale), self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * sqrt(2 / pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / pi)


class HalfCauchy(HalfOfReals):
    """The distribution of |x|, where x ~ Cauchy(0, scale)."""

    @property
    def base_dist(self) -> Cauchy:
        return Cauchy(ops.zeros_like(self.scale), self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return ops.full_like(self.scale, inf)

    @property
    def variance(self) -> Tensor:
        return ops.full_like(self.scale, inf)


class Gumbel(Distribution):
    """The Gumbel distribution with location loc and a scale."""

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (pi * pi / 6)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        u = uniform(self.loc, self._extended_shape(sample_shape))
        return self.loc - self.scale * (-u.log()).log()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class Pareto(Distribution):
    """The Pareto distribution: values of at least scale, with tail exponent alpha."""

    has_rsample = True
    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        u = uniform(self.scale, self._extended_shape(sample_shape))
        return self.scale * (-u.log() / self.alpha).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.alpha
        return a.log() + a * self.scale.log() - (a + 1) * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p() / self.alpha).exp()

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)


class Weibull(Distribution):
    """The Weibull distribution with a scale and a concentration (shape)."""

    has_rsample = True
    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * ops.lgamma(1 + 1 / self.concentration).exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** (1 / k)

    @property
    def variance(self) -> Tensor:
        first = ops.lgamma(1 + 1 / self.concentration)
        second = ops.lgamma(1 + 2 / self.concentration)
        return self.scale**2 * (second.exp() - (2 * first).exp())

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        u = uniform(self.scale, self._extended_shape(sample_shape))
        return self.scale * (-u.log()) ** (1 / self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k, y = self.concentration, value / self.scale
        return (k / self.scale).log() + (k - 1) * y.log() - y**k

    def cdf(self, value: Tensor) -> Tensor:
        """Returns the cumulative distribution function, also at 0, which is no value."""
        self._validate_sample(value, constraints.nonnegative)
        return -(-((value / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        k = self.concentration
        return EULER * (1 - 1 / k) + (self.scale / k).log() + 1
