"""Independent: batch dims as event dims."""
from __future__ import annotations

from typing import Any

from .._hints import Self
from .._tensor import Tensor
from .._types import Size
from . import constraints
from .distribution import Distribution, last_dims_summed
from .distribution import Shape

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dims are event dims: log_prob sums over them."""

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch, n = tuple(base_distribution.batch_shape), reinterpreted_batch_ndims
        if not 0 <= n <= len(batch):
            raise ValueError(
                f"Independent: reinterpreted_batch_ndims is {n}: must be in 0…{len(batch)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        self.has_rsample = base_distribution.has_rsample
        event = (*batch[len(batch) - n :], *base_distribution.event_shape)
        super().__init__(batch[: len(batch) - n], event, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        region = self.base_dist.support
        if not self.reinterpreted_batch_ndims:
            return region
        return constraints.independent(region, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return last_dims_summed(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return last_dims_summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        expanded = object.__new__(type(self)) if _instance is None else _instance
        expanded.__dict__.update(self.__dict__)
        kept = tuple(self.base_dist.batch_shape)[len(self._batch_shape) :]
        expanded.base_dist = self.base_dist.expand((*batch_shape, *kept))
        expanded._batch_shape = Size(batch_shape)
        return expanded

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
