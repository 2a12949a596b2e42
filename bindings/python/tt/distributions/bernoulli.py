"""The Bernoulli distribution."""
from __future__ import annotations

from math import nan
from typing import Any

from .. import _ops as ops
from .._tensor import Tensor
from ..autograd import no_grad
from . import constraints
from .distribution import Distribution, broadcast_all, clamped, one_of
from .distribution import Shape

TYPE_CHECKING = False

__all__ = ["Bernoulli"]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    from ..nn.functional import binary_cross_entropy_with_logits

    logits, target = ops.broadcast_tensors(logits, target.to(logits.dtype))
    return binary_cross_entropy_with_logits(logits, target, reduction="none")


class Bernoulli(Distribution):
    """The Bernoulli distribution: 1 with probability probs, else 0.

    logits: log(probs / (1 - probs)), instead of probs.
    """

    has_enumerate_support = True
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    if TYPE_CHECKING:
        probs: Tensor
        logits: Tensor

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if one_of("Bernoulli", probs, logits):
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits
        super().__init__(self._param.shape, (), validate_args)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Computes probs from logits, or logits from probs."""
            if name == "probs" and "logits" in self.__dict__:
                return self.logits.sigmoid()
            if name == "logits" and "probs" in self.__dict__:
                p = clamped(self.probs)
                return p.log() - (-p).log1p()
            raise AttributeError(f"'Bernoulli' object has no attribute '{name}'")

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        p = self.probs
        return (p >= 0.5).to(p.dtype).masked_fill(p == 0.5, nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return ops.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -cross_entropy(self.logits, value)

    def entropy(self) -> Tensor:
        return cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = ops.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view(2, *[1] * len(self._batch_shape))
        return values.expand(2, *self._batch_shape) if expand else values
