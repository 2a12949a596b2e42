"""Distributions of counts: Geometric, Poisson, Binomial, NegativeBinomial and Multinomial."""
from __future__ import annotations

from typing import Any

from .. import _ops as ops
from .._limits import finfo
from .._tensor import Tensor
from ..autograd import no_grad
from . import constraints
from ._gamma import binomial, poisson, standard_gamma
from .bernoulli import cross_entropy
from .categorical import Categorical
from .distribution import Distribution, broadcast_all, check_all, clamped, one_of
from .distribution import Shape

TYPE_CHECKING = False

__all__ = ["Binomial", "Geometric", "Multinomial", "NegativeBinomial", "Poisson"]


class WithProbs(Distribution):
    """Base class of distributions with a probability, or its logit log(p / (1 - p))."""

    if TYPE_CHECKING:
        probs: Tensor
        logits: Tensor
    else:

        def __getattr__(self, name):
            """Computes probs from logits, or logits from probs."""
            if name == "probs" and "logits" in self.__dict__:
                return self.logits.sigmoid()
            if name == "logits" and "probs" in self.__dict__:
                p = clamped(self.probs)
                return p.log() - (-p).log1p()
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def _param(self) -> Tensor:
        return self.probs if "probs" in self.__dict__ else self.logits

    @property
    def param_shape(self) -> Any:
        return self._param.shape


class Geometric(WithProbs):
    """The number of failures before the first success, where probs is the success probability."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if one_of("Geometric", probs, logits):
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._param.shape, (), validate_args)
        if self._validate_args:
            check_all(
                self.probs > 0,
                "Geometric: probs must be positive",
                lambda: f"Geometric: probs is {self.probs}: must be positive",
            )

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            p = self.probs.expand(self._extended_shape(sample_shape))
            u = ops.rand(p.shape, dtype=p.dtype, device=p.device).clamp(min=finfo(p.dtype).tiny)
            return (u.log() / (-p).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        p = self.probs
        q = (-p).masked_fill((p == 1) & (value == 0), 0)
        return value * q.log1p() + p.log()

    def entropy(self) -> Tensor:
        return cross_entropy(self.logits, self.probs) / self.probs


class Poisson(Distribution):
    """The number of events per unit of time at a mean rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ops.xlogy(value, self.rate) - self.rate - ops.lgamma(value + 1)


class Binomial(WithProbs):
    """The number of successes in total_count trials with success probability probs."""

    has_enumerate_support = True
    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if one_of("Binomial", probs, logits):
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.to(self._param.dtype)
        super().__init__(self._param.shape, (), validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        ways = ops.lgamma(n + 1) - ops.lgamma(value + 1) - ops.lgamma(n - value + 1)
        # log(1 + exp(logits)), for each of the n trials
        norm = n * (logits.clamp(min=0) + (-logits.abs()).exp().log1p())
        return ways + value * logits - norm

    def entropy(self) -> Tensor:
        n = int(self.total_count.max())
        if not bool((self.total_count == n).all()):
            raise NotImplementedError("Binomial: entropy() needs equal total_count")
        probabilities = self.log_prob(self.enumerate_support(False))
        return -(probabilities.exp() * probabilities).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = int(self.total_count.max())
        if not bool((self.total_count == n).all()):
            raise NotImplementedError("Binomial: enumerate_support() needs equal total_count")
        values = ops.arange(n + 1, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class NegativeBinomial(WithProbs):
    """The number of successes before total_count failures, with success probability probs."""

    arg_constraints = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if one_of("NegativeBinomial", probs, logits):
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.to(self._param.dtype)
        super().__init__(self._param.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rate = standard_gamma(self.total_count.expand(shape)) * self.logits.exp()
            return poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        from ..nn.functional import logsigmoid

        self._validate_sample(value)
        n = self.total_count
        chance = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = ops.lgamma(n + value) - ops.lgamma(value + 1) - ops.lgamma(n)
        return chance + ways.masked_fill(n + value == 0, 0)


class Multinomial(Distribution):
    """The counts of each of n outcomes in total_count draws of Categorical(probs)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: total_count must be an int")
        if total_count < 0:
            raise ValueError(f"Multinomial: total_count is {total_count}: must be at least 0")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Multinomial:
        expanded = object.__new__(type(self)) if _instance is None else _instance
        expanded.__dict__.update(self.__dict__)
        expanded._categorical = self._categorical.expand(batch_shape)
        expanded._batch_shape = expanded._categorical.batch_shape
        return expanded

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        sample_shape = tuple(sample_shape)
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            counts = ops.zeros(
                self._extended_shape(sample_shape), dtype=self.probs.dtype, device=drawn.device
            )
            return counts.scatter_add_(-1, drawn, ops.ones_like(drawn, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        ways = ops.lgamma(value.sum(-1) + 1) - ops.lgamma(value + 1).sum(-1)
        logits, value = ops.broadcast_tensors(self.logits, value)
        impossible = (value == 0) & (logits < finfo(logits.dtype).min / 2)
        return ways + (logits.masked_fill(impossible, 0) * value).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        each = Binomial(n, self.probs)
        values = each.enumerate_support(False)[1:]
        weights = each.log_prob(values).exp()
        total = ops.lgamma(ops.full((), n + 1.0, dtype=self.probs.dtype))
        return (
            n * self._categorical.entropy()
            - total
            + (weights * ops.lgamma(values + 1)).sum((0, -1))
        )
