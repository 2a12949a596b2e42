"""kl_divergence and its formulas for pairs of distributions."""
from __future__ import annotations

from math import inf, log, pi

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
from .locations import EULER, Cauchy, Gumbel, HalfCauchy, HalfNormal, Pareto
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .one_hot import OneHotCategorical
from .transformed import TransformedDistribution
from .uniform import Uniform
from .wishart import Wishart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["kl_divergence", "register_kl"]
FORMULAS: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Registers the decorated function of (p, q) as the formula for two classes and their
    subclasses."""
    for cls in (type_p, type_q):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError(f"register_kl: {cls} is no subclass of Distribution")

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


@register_kl(Uniform, Normal)
def uniform_and_normal(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    spread = width**2 / 12 + ((p.high + p.low - 2 * q.loc) / 2) ** 2
    return (q.scale * (2 * pi) ** 0.5 / width).log() + 0.5 * spread / q.scale**2


@register_kl(Exponential, Gamma)
def exponential_and_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio, b = q.rate / p.rate, q.concentration
    return -b * ratio.log() + ratio + ops.lgamma(b) + b * EULER - (1 + EULER)


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
        factor = p._tril
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
