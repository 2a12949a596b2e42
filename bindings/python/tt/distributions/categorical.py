"""The categorical distribution."""
from __future__ import annotations

from math import nan
from typing import Any

from .. import _ops as ops
from .._limits import finfo
from .._tensor import Tensor
from ..autograd import no_grad
from . import constraints
from .distribution import Distribution, clamped, count_of, one_of
from .distribution import Shape

TYPE_CHECKING = False

__all__ = ["Categorical"]


class Categorical(Distribution):
    """The categorical distribution: indices 0 … n - 1 with probabilities proportional to probs.

    probs: weights along the last dim. logits: their logarithms, instead of probs. The attributes
    probs and logits are normalized.
    """

    has_enumerate_support = True
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    if TYPE_CHECKING:
        probs: Tensor
        logits: Tensor

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        one_of("Categorical", probs, logits)
        given: Any = logits if probs is None else probs
        if given.ndim < 1:
            raise ValueError("Categorical: the parameter is 0-dim: must have at least 1 dim")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Computes probs from logits, or logits from probs."""
            if name == "probs" and "logits" in self.__dict__:
                return self.logits.softmax(-1)
            if name == "logits" and "probs" in self.__dict__:
                return clamped(self.probs).log()
            raise AttributeError(f"'Categorical' object has no attribute '{name}'")

    def _vector_shape(self, constraint: constraints.Constraint) -> tuple[int, ...]:
        return (self._num_events,)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> Any:
        return self.probs.shape

    @property
    def mean(self) -> Tensor:
        return ops.full(self._batch_shape, nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def variance(self) -> Tensor:
        return self.mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        sample_shape = tuple(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = ops.multinomial(rows, count_of(sample_shape), True)
            return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        like = self.logits[..., :1]
        where, _ = ops.broadcast_tensors(value.long().unsqueeze(-1), like)
        logits = self.logits.expand(*where.shape[:-1], self._num_events)
        return logits.gather(-1, where).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        values = ops.arange(n, device=self.probs.device).view(n, *[1] * len(self._batch_shape))
        return values.expand(n, *self._batch_shape) if expand else values
