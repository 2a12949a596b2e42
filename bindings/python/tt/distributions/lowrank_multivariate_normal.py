"""The multivariate normal distribution whose covariance is diagonal plus a low-rank matrix."""
from __future__ import annotations

from math import log, pi
from typing import Any

from .. import _ops as ops
from .. import linalg
from .._settings import broadcast_shapes
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .distribution import Shape

__all__ = ["LowRankMultivariateNormal"]


def times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with mean loc and the covariance matrix
    cov_factor @ cov_factor.mT + diag(cov_diag).

    Only a matrix with as many rows as cov_factor has columns is decomposed.
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        name = "LowRankMultivariateNormal"
        if loc.ndim < 1:
            raise ValueError(f"{name}: loc is 0-dim: must have at least 1 dim")
        n = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n:
            raise ValueError(
                f"{name}: cov_factor is {list(cov_factor.shape)}: must be (…, {n}, rank)"
            )
        if cov_diag.ndim < 1 or cov_diag.shape[-1] != n:
            raise ValueError(f"{name}: cov_diag is {list(cov_diag.shape)}: must end in [{n}]")
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(*batch, n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(*batch, n)
        super().__init__(batch, (n,), validate_args)
        # of the inverse by Woodbury's identity: I + W' D^-1 W for the factor W and the diagonal D
        rank = ops.eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        weighted = cov_factor.mT / cov_diag.unsqueeze(-2)
        self._capacitance_tril = linalg.cholesky(rank + weighted @ cov_factor)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> LowRankMultivariateNormal:
        shape, (n, rank) = tuple(batch_shape), self.cov_factor.shape[-2:]
        return self._expanded(
            LowRankMultivariateNormal(
                self.loc.expand(*shape, n),
                self.cov_factor.expand(*shape, n, rank),
                self.cov_diag.expand(*shape, n),
                self._validate_args,
            ),
            _instance,
        )

    def _weighted(self) -> Tensor:
        return self.cov_factor.mT / self.cov_diag.unsqueeze(-2)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def precision_matrix(self) -> Tensor:
        part = linalg.solve_triangular(self._capacitance_tril, self._weighted(), upper=False)
        return self.cov_diag.reciprocal().diag_embed() - part.mT @ part

    @property
    def scale_tril(self) -> Tensor:
        """Returns the lower Cholesky factor of the covariance matrix."""
        return linalg.cholesky(self.covariance_matrix)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        of_rank = ops.randn((*shape[:-1], self.cov_factor.shape[-1]), **like)
        of_diag = ops.randn(shape, **like)
        return self.loc + times(self.cov_factor, of_rank) + self.cov_diag.sqrt() * of_diag

    def half_log_det(self) -> Tensor:
        """Returns half the log-determinant of the covariance matrix."""
        of_rank = self._capacitance_tril.diagonal(0, -2, -1).log().sum(-1)
        return of_rank + 0.5 * self.cov_diag.log().sum(-1)

    def mahalanobis(self, difference: Tensor) -> Tensor:
        """Returns the squared distance of a value from loc, measured by the covariance."""
        projected = times(self._weighted(), difference).unsqueeze(-1)
        part = linalg.solve_triangular(self._capacitance_tril, projected, upper=False)
        return (difference**2 / self.cov_diag).sum(-1) - (part**2).sum((-2, -1))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self._event_shape[0]
        return -0.5 * (n * log(2 * pi) + self.mahalanobis(value - self.loc)) - self.half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1 + log(2 * pi)) + self.half_log_det()
