"""The continuous Bernoulli distribution."""
from __future__ import annotations

from math import log
from typing import Any

from .. import _ops as ops
from .._tensor import Tensor
from . import constraints
from .bernoulli import cross_entropy
from .distribution import Distribution, broadcast_all, clamped, one_of
from .distribution import Shape

TYPE_CHECKING = False

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Distribution):
    """The continuous Bernoulli distribution: a density on [0, 1] proportional to
    probs ** x * (1 - probs) ** (1 - x).

    logits: log(probs / (1 - probs)), instead of probs. lims: for probs between them, where the
    formulas divide by almost 0, Taylor series around 0.5 are used.
    """

    has_rsample = True
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    if TYPE_CHECKING:
        probs: Tensor
        logits: Tensor

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        if one_of("ContinuousBernoulli", probs, logits):
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        param = self.probs if probs is not None else self.logits
        super().__init__(param.shape, (), validate_args)
        if probs is not None:
            self.probs = clamped(self.probs)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Computes probs from logits, or logits from probs."""
            if name == "probs" and "logits" in self.__dict__:
                return clamped(self.logits.sigmoid())
            if name == "logits" and "probs" in self.__dict__:
                return self.probs.log() - (-self.probs).log1p()
            raise AttributeError(f"'ContinuousBernoulli' object has no attribute '{name}'")

    @property
    def param_shape(self) -> Any:
        return self._batch_shape

    def _far(self) -> Tensor:
        """Returns where probs is far enough from 0.5 for the formulas."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """Returns probs, replaced by a number that suits the formulas where it does not."""
        return self.probs.masked_fill(~self._far(), self._lims[0])

    def log_norm(self) -> Tensor:
        """Returns the logarithm of the factor that makes the density's integral 1."""
        p = self._cut_probs()
        width = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5) ** 2
        return ops.where(self._far(), width, log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        mean = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return ops.where(self._far(), mean, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        variance = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        return ops.where(self._far(), variance, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(ops.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.log_norm() - cross_entropy(self.logits, value)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        p = self._cut_probs()
        cdf = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        return ops.where(self._far(), cdf, value).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        other = (-p).log1p()
        icdf = ((-p + value * (2 * p - 1)).log1p() - other) / (p.log() - other)
        return ops.where(self._far(), icdf, value)

    def entropy(self) -> Tensor:
        other = (-self.probs).log1p()
        return self.mean * (other - self.probs.log()) - self.log_norm() - other
