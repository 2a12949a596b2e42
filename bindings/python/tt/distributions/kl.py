"""kl_divergence and its formulas for pairs of distributions."""
from __future__ import annotations

from math import inf, log, pi
from typing import Any, Callable

from .. import _ops as ops
from .. import linalg
from .._settings import broadcast_shapes
from .._tensor import Tensor
from .bernoulli import Bernoulli
from .categorical import Categorical
from .continuous_bernoulli import ContinuousBernoulli
from .distribution import Distribution, last_dims_summed
from .exponential import Exponential
from .independent import Independent
from .laplace import Laplace
from .normal import LogNormal, Normal
from .counts import Binomial, Geometric, Poisson
from .gamma import Beta, Dirichlet, Gamma
from .locations import EULER, Cauchy, Gumbel, HalfCauchy, HalfNormal, Pareto, Weibull
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .one_hot import OneHotCategorical
from .transformed import TransformedDistribution
from .uniform import Uniform
from .wishart import Wishart

__all__ = ["kl_divergence", "register_kl"]
FORMULAS: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_KL_REGISTRY = FORMULAS  # PyTorch's name


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Registers the decorated function of (p, q) as the formula for two classes and their
    subclasses."""
    for cls in (type_p, type_q):
        if not isinstance(cls, type):
            raise TypeError(f"register_kl: {cls!r} is no class")

    def decorate(formula: Any) -> Any:
        FORMULAS[type_p, type_q] = formula
        return formula

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Returns the Kullback-Leibler divergence KL(p || q) for each distribution of the batch.

    Raises NotImplementedError for a pair without a formula.
    """
    for type_p in type(p).__mro__:
        for type_q in type(q).__mro__:
            if (type_p, type_q) in FORMULAS:
                return FORMULAS[type_p, type_q](p, q)
    raise NotImplementedError(
        f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}"
    )


@register_kl(Normal, Normal)
@register_kl(LogNormal, LogNormal)
def normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    distance = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Uniform, Uniform)
def uniform(p: Uniform, q: Uniform) -> Tensor:
    divergence = ((q.high - q.low) / (p.high - p.low)).log()
    return divergence.masked_fill((q.low > p.low) | (q.high < p.high), inf)


@register_kl(Exponential, Exponential)
def exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Laplace, Laplace)
def laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - 1 - ratio.log()


@register_kl(Bernoulli, Bernoulli)
def bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    from ..nn.functional import softplus

    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = ones.masked_fill(q.probs == 0, inf).masked_fill(p.probs == 0, 0)
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = zeros.masked_fill(q.probs == 1, inf).masked_fill(p.probs == 1, 0)
    return ones + zeros


@register_kl(Categorical, Categorical)
def categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return terms.masked_fill(q.probs == 0, inf).masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return categorical(p._categorical, q._categorical)


@register_kl(Gamma, Gamma)
def gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    scales = b * (p.rate / q.rate).log() + a * (q.rate / p.rate - 1)
    return scales + ops.lgamma(b) - ops.lgamma(a) + (a - b) * ops.digamma(a)


@register_kl(Dirichlet, Dirichlet)
def dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norms = ops.lgamma(total) - ops.lgamma(b.sum(-1)) + (ops.lgamma(b) - ops.lgamma(a)).sum(-1)
    return norms + ((a - b) * (ops.digamma(a) - ops.digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def beta(p: Beta, q: Beta) -> Tensor:
    return dirichlet(p.both(), q.both())


@register_kl(Poisson, Poisson)
def poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Binomial, Binomial)
def binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("kl_divergence: Binomials of fewer trials than the other's")
    one_trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * one_trial).masked_fill(p.total_count > q.total_count, inf)


@register_kl(HalfNormal, HalfNormal)
def half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return normal(p.base_dist, q.base_dist)


@register_kl(Cauchy, Cauchy)
def cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    above = ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log()
    return above - (4 * p.scale * q.scale).log()


@register_kl(HalfCauchy, HalfCauchy)
def half_cauchy(p: HalfCauchy, q: HalfCauchy) -> Tensor:
    return cauchy(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    divergence = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return divergence.masked_fill(p.scale < q.scale, inf)


@register_kl(Gumbel, Gumbel)
def gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    locs = p.loc / q.scale, q.loc / q.scale
    tail = (locs[1] - locs[0] + ops.lgamma(1 + ratio)).exp()
    return locs[0] - locs[1] - ratio.log() + tail + ratio * EULER - (1 + EULER)


# ---- pairs of different classes ----
# KL(p || q) is -(entropy of p) - E[log q(x)]. The functions below return E[log q(x)] from what is
# known of x: its mean and variance, and the means of log(x), log(1 - x) and exp(-x / scale).


def under_normal(q: Normal, mean: Tensor, variance: Tensor) -> Tensor:
    return (
        -q.scale.log() - 0.5 * log(2 * pi) - ((mean - q.loc) ** 2 + variance) / (2 * q.scale**2)
    )


def under_gamma(q: Gamma, mean: Tensor, mean_log: Tensor) -> Tensor:
    a, b = q.concentration, q.rate
    return a * b.log() - ops.lgamma(a) + (a - 1) * mean_log - b * mean


def under_gumbel(q: Gumbel, mean: Tensor, mean_exp: Tensor) -> Tensor:
    return -q.scale.log() - (mean - q.loc) / q.scale - (q.loc / q.scale).exp() * mean_exp


def under_continuous_bernoulli(q: ContinuousBernoulli, mean: Tensor) -> Tensor:
    return q.log_norm() + mean * q.logits + (-q.probs).log1p()


def mean_log_of_uniform(low: Tensor, high: Tensor) -> Tensor:
    return (ops.xlogy(high, high) - ops.xlogy(low, low)) / (high - low) - 1


def mean_log_of_beta(p: Beta) -> tuple[Tensor, Tensor]:
    """Returns the means of log(x) and log(1 - x)."""
    a, b = p.concentration1, p.concentration0
    total = ops.digamma(a + b)
    return ops.digamma(a) - total, ops.digamma(b) - total


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def any_and_normal(p: Any, q: Normal) -> Tensor:
    return -p.entropy() - under_normal(q, p.mean, p.variance)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
def positive_and_exponential(p: Any, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Uniform, Exponential)
def uniform_and_exponential(p: Uniform, q: Exponential) -> Tensor:
    return positive_and_exponential(p, q).masked_fill(p.low < 0, inf)


@register_kl(Beta, Gamma)
def beta_and_gamma(p: Beta, q: Gamma) -> Tensor:
    return -p.entropy() - under_gamma(q, p.mean, mean_log_of_beta(p)[0])


@register_kl(Exponential, Gamma)
def exponential_and_gamma(p: Exponential, q: Gamma) -> Tensor:
    return -p.entropy() - under_gamma(q, p.mean, -EULER - p.rate.log())


@register_kl(Pareto, Gamma)
def pareto_and_gamma(p: Pareto, q: Gamma) -> Tensor:
    return -p.entropy() - under_gamma(q, p.mean, p.scale.log() + 1 / p.alpha)


@register_kl(Uniform, Gamma)
def uniform_and_gamma(p: Uniform, q: Gamma) -> Tensor:
    expected = under_gamma(q, p.mean, mean_log_of_uniform(p.low, p.high))
    return (-p.entropy() - expected).masked_fill(p.low < 0, inf)


@register_kl(Exponential, Gumbel)
def exponential_and_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    scaled = p.rate * q.scale
    return -p.entropy() - under_gumbel(q, p.mean, scaled / (scaled + 1))


@register_kl(Gamma, Gumbel)
def gamma_and_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    mean_exp = (-p.concentration * (1 / (p.rate * q.scale)).log1p()).exp()
    return -p.entropy() - under_gumbel(q, p.mean, mean_exp)


@register_kl(Normal, Gumbel)
def normal_and_gumbel(p: Normal, q: Gumbel) -> Tensor:
    mean_exp = (0.5 * (p.scale / q.scale) ** 2 - p.loc / q.scale).exp()
    return -p.entropy() - under_gumbel(q, p.mean, mean_exp)


@register_kl(Uniform, Gumbel)
def uniform_and_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    mean_exp = ((-p.low / q.scale).exp() - (-p.high / q.scale).exp()) * q.scale / (p.high - p.low)
    return -p.entropy() - under_gumbel(q, p.mean, mean_exp)


@register_kl(Beta, ContinuousBernoulli)
def beta_and_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - under_continuous_bernoulli(q, p.mean)


@register_kl(Uniform, ContinuousBernoulli)
def uniform_and_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    divergence = -p.entropy() - under_continuous_bernoulli(q, p.mean)
    return divergence.masked_fill((p.low < 0) | (p.high > 1), inf)


@register_kl(Uniform, Beta)
def uniform_and_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    logs = mean_log_of_uniform(p.low, p.high), mean_log_of_uniform(1 - p.high, 1 - p.low)
    norm = ops.lgamma(a + b) - ops.lgamma(a) - ops.lgamma(b)
    divergence = -p.entropy() - (norm + (a - 1) * logs[0] + (b - 1) * logs[1])
    return divergence.masked_fill((p.low < 0) | (p.high > 1), inf)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def share_and_uniform(p: Any, q: Uniform) -> Tensor:
    divergence = -p.entropy() + (q.high - q.low).log()
    return divergence.masked_fill((q.low > 0) | (q.high < 1), inf)


@register_kl(Uniform, Pareto)
def uniform_and_pareto(p: Uniform, q: Pareto) -> Tensor:
    mean_log = mean_log_of_uniform(p.low, p.high)
    expected = (q.alpha * q.scale**q.alpha).log() - (q.alpha + 1) * mean_log
    return (-p.entropy() - expected).masked_fill(p.low < q.scale, inf)


@register_kl(Bernoulli, Poisson)
def bernoulli_and_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Weibull, Weibull)
def weibull(p: Weibull, q: Weibull) -> Tensor:
    k, c = p.concentration, q.concentration
    mean_log = p.scale.log() - EULER / k
    mean_power = (c * (p.scale / q.scale).log() + ops.lgamma(1 + c / k)).exp()
    return -p.entropy() - (c.log() - c * q.scale.log() + (c - 1) * mean_log - mean_power)


def without_common_support(p: Any, q: Any) -> Tensor:
    """p has values that q does not have."""
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    return ops.full_like(p.mean, inf).expand(shape).clone()


WIDER: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for wide, narrow_ones in WIDER.items():
    for narrow in narrow_ones:
        register_kl(wide, narrow)(without_common_support)


@register_kl(Normal, Laplace)
def normal_and_laplace(p: Normal, q: Laplace) -> Tensor:
    difference = p.loc - q.loc
    ratio, scaled = p.scale / q.scale, difference / p.scale
    folded = (2 / pi) ** 0.5 * ratio * (-0.5 * scaled**2).exp()
    mean = folded + difference / q.scale * ops.erf(scaled * 0.5**0.5)
    return -(ratio.log()) + mean - 0.5 * log(0.5 * pi) - 0.5


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def multivariate_normal(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("kl_divergence: the vectors must have the same length")
    squares = q.mahalanobis(q.loc - p.loc) + trace_of_quotient(p, q)
    return q.half_log_det() - p.half_log_det() + 0.5 * (squares - p.event_shape[0])


def trace_of_quotient(p: Any, q: Any) -> Tensor:
    """Returns the trace of inv(q.covariance_matrix) @ p.covariance_matrix. With factors F of
    p's covariance, F @ F.mT, it is the sum of the squared lengths of the columns of F."""
    if isinstance(p, LowRankMultivariateNormal):
        factor = ops.cat([p.cov_factor, p.cov_diag.sqrt().diag_embed()], -1)
    else:
        factor = p._unbroadcasted_scale_tril
    batch = broadcast_shapes(p.batch_shape, q.batch_shape)
    return q.mahalanobis(factor.expand(*batch, *factor.shape[-2:]).movedim(-1, 0)).sum(0)


@register_kl(Wishart, Wishart)
def wishart(p: Wishart, q: Wishart) -> Tensor:
    n = p.event_shape[-1]
    if n != q.event_shape[-1]:
        raise ValueError("kl_divergence: the matrices must have the same size")
    spread = linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    norms = ops.mvlgamma(q.df / 2, n) - ops.mvlgamma(p.df / 2, n)
    dets = q.df * (q.half_log_det() - p.half_log_det())
    degrees = (p.df - q.df) / 2 * p.digammas()
    return norms + dets + degrees + p.df / 2 * ((spread**2).sum((-2, -1)) - n)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    norms = p.log_norm() + (-p.probs).log1p() - q.log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + norms


@register_kl(TransformedDistribution, TransformedDistribution)
def transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms:
        raise NotImplementedError("kl_divergence: the transforms must be equal")
    return last_dims_summed(kl_divergence(p.base_dist, q.base_dist), p._joined)


@register_kl(Independent, Independent)
def independent(p: Independent, q: Independent) -> Tensor:
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"kl_divergence: reinterpreted_batch_ndims are {n} and {q.reinterpreted_batch_ndims}: "
            "must be equal"
        )
    return last_dims_summed(kl_divergence(p.base_dist, q.base_dist), n)
