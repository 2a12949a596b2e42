"""OneHotCategorical, RelaxedOneHotCategorical and RelaxedBernoulli."""
from __future__ import annotations

from typing import Any

from .. import _ops as ops
from .._create import as_tensor
from .._limits import finfo
from .._tensor import Tensor
from . import constraints
from .bernoulli import Bernoulli
from .categorical import Categorical
from .distribution import Distribution
from .distribution import Shape
from .locations import uniform
from .transforms import _clipped_sigmoid

__all__ = [
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]


class OfCategorical(Distribution):
    """Base class of distributions that are defined by a Categorical distribution."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
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

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        expanded = object.__new__(type(self)) if _instance is None else _instance
        expanded.__dict__.update(self.__dict__)
        expanded._categorical = self._categorical.expand(batch_shape)
        expanded._batch_shape = expanded._categorical.batch_shape
        return expanded


class OneHotCategorical(OfCategorical):
    """One-hot vectors of the indices that Categorical(probs) draws."""

    has_enumerate_support = True
    support = constraints.one_hot

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self.one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def one_hot(self, indices: Tensor) -> Tensor:
        from ..nn.functional import one_hot

        return one_hot(indices, self._event_shape[0]).to(self.probs.dtype)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self.one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = ops.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical with straight-through gradients: those of samples are passed to probs."""

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class RelaxedOneHotCategorical(OfCategorical):
    """The Concrete (Gumbel-softmax) distribution: probability vectors that approach one-hot vectors
    as temperature approaches 0."""

    has_rsample = True
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        u = uniform(self.logits, self._extended_shape(sample_shape))
        gumbel = -(-u.log()).log()
        return ((self.logits + gumbel) / self.temperature).softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self._event_shape[0]
        temperature = as_tensor(self.temperature, dtype=self.logits.dtype)
        logs = value.clamp(min=finfo(value.dtype).tiny).log()
        score = self.logits - temperature * logs
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        scale = ops.lgamma(ops.full((), float(n), dtype=value.dtype)) + (n - 1) * temperature.log()
        return score + scale - logs.sum(-1)


class RelaxedBernoulli(Distribution):
    """A relaxed Bernoulli distribution on (0, 1). Values approach 0 or 1 as temperature
    approaches 0."""

    has_rsample = True
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._bernoulli = Bernoulli(probs, logits, validate_args)
        super().__init__(self._bernoulli.batch_shape, (), validate_args)

    @property
    def probs(self) -> Tensor:
        return self._bernoulli.probs

    @property
    def logits(self) -> Tensor:
        return self._bernoulli.logits

    def expand(self, batch_shape: Shape, _instance: Any = None) -> RelaxedBernoulli:
        logits = self.logits.expand(tuple(batch_shape))
        return self._expanded(
            RelaxedBernoulli(self.temperature, None, logits, self._validate_args), _instance
        )

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        u = uniform(self.logits, self._extended_shape(sample_shape))
        noise = u.log() - (-u).log1p()
        return _clipped_sigmoid((self.logits + noise) / self.temperature)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        temperature = as_tensor(self.temperature, dtype=self.logits.dtype)
        limits = finfo(value.dtype)
        value = value.clamp(limits.tiny, 1 - limits.eps)
        y = value.log() - (-value).log1p()
        difference = self.logits - y * temperature
        density = temperature.log() + difference - 2 * softplus(difference)
        return density - (value.log() + (-value).log1p())


def softplus(x: Tensor) -> Tensor:
    from ..nn.functional import softplus

    return softplus(x)
