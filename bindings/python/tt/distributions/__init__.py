"""Probability distributions, with the names of torch.distributions."""
from . import constraints, transforms
from .bernoulli import Bernoulli
from .categorical import Categorical
from .distribution import Distribution
from .exponential import Exponential
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .normal import LogNormal, Normal
from .counts import Binomial, Geometric, Multinomial, NegativeBinomial, Poisson
from .gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from .locations import Cauchy, Gumbel, HalfCauchy, HalfNormal, Pareto, Weibull
from .one_hot import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from .transformed import TransformedDistribution
from .multivariate_normal import MultivariateNormal
from .uniform import Uniform

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "Weibull",
    "constraints",
    "kl_divergence",
    "register_kl",
    "transforms",
]


def __dir__() -> list[str]:
    return __all__
