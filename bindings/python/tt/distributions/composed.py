"""Distributions made of others (transformed, mixed, or ratios), and VonMises."""
from __future__ import annotations

from math import inf, log, nan, pi
from typing import Any

from .. import _ops as ops
from .._tensor import Tensor
from ..autograd import no_grad
from . import constraints
from ._gamma import von_mises
from .categorical import Categorical
from .distribution import Distribution, broadcast_all
from .distribution import Shape
from .gamma import Gamma
from .normal import Normal
from .transformed import TransformedDistribution
from .transforms import AffineTransform, PowerTransform, StickBreakingTransform
from .uniform import Uniform

__all__ = [
    "FisherSnedecor",
    "InverseGamma",
    "Kumaraswamy",
    "LogisticNormal",
    "MixtureSameFamily",
    "VonMises",
]
EULER = 0.57721566490153286060


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x, where x has the gamma distribution."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> InverseGamma:
        shape = tuple(batch_shape)
        concentration, rate = self.concentration.expand(shape), self.rate.expand(shape)
        return self._expanded(InverseGamma(concentration, rate, self._validate_args), _instance)

    @property
    def concentration(self) -> Tensor:
        base: Any = self.base_dist
        return base.concentration

    @property
    def rate(self) -> Tensor:
        base: Any = self.base_dist
        return base.rate

    @property
    def mean(self) -> Tensor:
        mean = self.rate / (self.concentration - 1)
        return mean.masked_fill(self.concentration <= 1, inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        variance = self.rate**2 / ((a - 1) ** 2 * (a - 2))
        return variance.masked_fill(a <= 2, inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + ops.lgamma(a) - (1 + a) * ops.digamma(a)


class FisherSnedecor(Distribution):
    """The F-distribution: the ratio of two chi-squared variables, each divided by its degrees of
    freedom."""

    has_rsample = True
    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        variance = 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return variance.masked_fill(b <= 4, nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        parts = [Gamma(df / 2, df, validate_args=False) for df in (self.df1, self.df2)]
        above, below = (part.rsample(sample_shape) for part in parts)
        return above / below.clamp(min=1.1754943508222875e-38)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        ways = ops.lgamma(a + b) - ops.lgamma(a) - ops.lgamma(b)
        power = a * ratio.log() + (a - 1) * value.log()
        return ways + power - (a + b) * (ratio * value).log1p()


class Kumaraswamy(TransformedDistribution):
    """The distribution on (0, 1) with the cdf 1 - (1 - x^concentration1)^concentration0."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one = ops.ones_like(self.concentration0)
        parts = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(one * 0, one, validate_args), parts, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Kumaraswamy:
        shape = tuple(batch_shape)
        both = self.concentration1.expand(shape), self.concentration0.expand(shape)
        return self._expanded(Kumaraswamy(*both, self._validate_args), _instance)

    def _moment(self, n: int) -> Tensor:
        part = 1 + n / self.concentration1
        whole = part + self.concentration0
        logarithm = ops.lgamma(part) + ops.lgamma(self.concentration0) - ops.lgamma(whole)
        return self.concentration0 * logarithm.exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return mode.masked_fill((a < 1) | (b < 1), nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1) ** 2

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = ops.digamma(b + 1) + EULER
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """The distribution on the simplex of StickBreakingTransform of normal variables."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> LogisticNormal:
        shape = (*batch_shape, self.loc.shape[-1])
        return self._expanded(
            LogisticNormal(self.loc.expand(shape), self.scale.expand(shape), self._validate_args),
            _instance,
        )

    @property
    def loc(self) -> Tensor:
        base: Any = self.base_dist
        return base.loc

    @property
    def scale(self) -> Tensor:
        base: Any = self.base_dist
        return base.scale


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one family: component_distribution has them along its last
    batch dimension, mixture_distribution, a Categorical, their weights."""

    has_rsample = False
    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError("MixtureSameFamily: the mixture distribution must be a Categorical")
        if not isinstance(component, Distribution):
            raise ValueError("MixtureSameFamily: the component distribution is no Distribution")
        n = mixture.probs.shape[-1]
        if not component.batch_shape or component.batch_shape[-1] != n:
            raise ValueError(
                f"MixtureSameFamily: the mixture has {n} components, component_distribution the "
                f"batch shape {list(component.batch_shape)}: its last size must be {n}"
            )
        self.mixture_distribution, self.component_distribution = mixture, component
        self._event_dims = len(component.event_shape)
        super().__init__(component.batch_shape[:-1], component.event_shape, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> MixtureSameFamily:
        shape = tuple(batch_shape)
        n = self.component_distribution.batch_shape[-1]
        return self._expanded(
            MixtureSameFamily(
                self.mixture_distribution.expand(shape),
                self.component_distribution.expand((*shape, n)),
                self._validate_args,
            ),
            _instance,
        )

    @property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def __repr__(self) -> str:
        parts = (self.mixture_distribution, self.component_distribution)
        return f"MixtureSameFamily(\n  {parts[0]},\n  {parts[1]})"

    def _weights(self) -> Tensor:
        """Returns the weights in the shape of the components' values."""
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * self._event_dims))

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_dims)

    @property
    def variance(self) -> Tensor:
        dim = -1 - self._event_dims
        inside = (self._weights() * self.component_distribution.variance).sum(dim)
        apart = self.component_distribution.mean - self.mean.unsqueeze(dim)
        return inside + (self._weights() * apart**2).sum(dim)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        below = self.component_distribution.cdf(value.unsqueeze(-1))
        return (below * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        x = value.unsqueeze(-1 - self._event_dims)
        logits = self.mixture_distribution.logits.log_softmax(-1)
        return (self.component_distribution.log_prob(x) + logits).logsumexp(-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            dim = values.ndim - 1 - self._event_dims
            index = chosen.reshape((*chosen.shape, *[1] * (1 + self._event_dims)))
            shape = (*values.shape[:dim], 1, *values.shape[dim + 1 :])
            return values.gather(dim, index.expand(shape)).squeeze(dim)


class VonMises(Distribution):
    """The von Mises distribution of angles from -pi to pi around loc."""

    has_rsample = False
    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        """The direction of the mean: loc."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """1 minus the length of the mean of the unit vectors."""
        k = self.concentration
        return 1 - ops.i1e(k) / ops.i0e(k)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k = self.concentration
        # i0(k) = i0e(k) exp(k)
        return k * ((value - self.loc).cos() - 1) - log(2 * pi) - ops.i0e(k).log()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws in float64."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            k = self.concentration.double()
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = ops.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho)).expand(shape)
            angles = von_mises(r, k.expand(shape))
            around = angles + pi + self.loc.double()
            return (around.remainder(2 * pi) - pi).to(self.loc.dtype)
