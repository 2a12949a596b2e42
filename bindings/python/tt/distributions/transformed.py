"""Distributions of transformed values."""
from __future__ import annotations

from typing import Any, Sequence

from .._tensor import Tensor
from .._types import Size
from ..autograd import no_grad
from . import constraints
from .distribution import Distribution, last_dims_summed
from .distribution import Shape
from .transforms import ComposeTransform, Transform

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of t(x), where x ~ base_distribution and t is a transform, or a list of
    transforms that are applied in order."""

    base_dist: Any

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(part, Transform) for part in parts):
            raise ValueError("TransformedDistribution: transforms must be Transforms")
        self.transforms, self.base_dist = parts, base_distribution
        self._whole = ComposeTransform(parts)
        n = len(base_distribution.event_shape)
        joined = max(n, self._whole.event_dim_in)
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(base_shape) < joined:
            raise ValueError(
                f"TransformedDistribution: the base has {len(base_shape)} dims: the transforms need "
                f"{joined}"
            )
        self._joined = joined - n  # batch dims of the base that are event dims here
        shape = tuple(self._whole.forward_shape(base_shape))
        expanded = tuple(self._whole.inverse_shape(shape))
        if expanded != base_shape:  # parameters of the transforms are batches
            self.base_dist = base_distribution.expand(expanded[: len(expanded) - n])
        more = self._whole.event_dim_out - self._whole.event_dim_in
        event_dims = max(self._whole.event_dim_out, joined + more)
        super().__init__(
            shape[: len(shape) - event_dims], shape[len(shape) - event_dims :], validate_args
        )

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        n = len(self._event_shape) - last.event_dim
        return constraints.independent(last, n) if n else last

    def expand(self, batch_shape: Shape, _instance: Any = None) -> TransformedDistribution:
        expanded = object.__new__(type(self)) if _instance is None else _instance
        expanded.__dict__.update(self.__dict__)
        shape = (*batch_shape, *self._event_shape)
        base_shape = tuple(self._whole.inverse_shape(shape))
        n = len(self.base_dist.event_shape)
        expanded.base_dist = self.base_dist.expand(base_shape[: len(base_shape) - n])
        expanded._batch_shape = Size(batch_shape)
        return expanded

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = len(self._event_shape)
        total: Any = 0.0
        y = value
        for part in reversed(self.transforms):
            x = part._inv_call(y)
            n += part.event_dim_in - part.event_dim_out
            slope = part.log_abs_det_jacobian(x, y)
            total = total - last_dims_summed(slope, n - part.event_dim_in)
            y = x
        base = self.base_dist.log_prob(y)
        return total + last_dims_summed(base, n - len(self.base_dist.event_shape))

    def mirrored(self, value: Tensor) -> Tensor:
        """Returns 1 - value where the transforms are decreasing, else value."""
        sign = self._whole.sign
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """Returns the cumulative distribution function, also at the ends of the support."""
        x = self._whole._inv_call(value)
        if self._validate_args:
            self.base_dist._validate_sample(x)
        return self.mirrored(self.base_dist.cdf(x))

    def icdf(self, value: Tensor) -> Tensor:
        return self._whole(self.base_dist.icdf(self.mirrored(value)))
