"""The multivariate normal distribution."""
from __future__ import annotations

from math import log, pi
from typing import Any

from .. import _ops as ops
from .. import linalg
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .distribution import Shape

TYPE_CHECKING = False

__all__ = ["MultivariateNormal"]


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """Returns the lower Cholesky factor of the inverse of P."""
    upper = linalg.cholesky(P.flip(-2, -1)).flip(-2, -1).mT
    unit = ops.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return linalg.solve_triangular(upper, unit, upper=False)


class MultivariateNormal(Distribution):
    """The multivariate normal distribution with mean loc.

    Exactly one of covariance_matrix, its inverse precision_matrix and its lower triangular Cholesky
    factor scale_tril is required.
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        matrices = {name: m for name, m in given.items() if m is not None}
        if len(matrices) != 1:
            raise ValueError(f"MultivariateNormal: takes exactly one of {', '.join(given)}")
        if loc.ndim < 1:
            raise ValueError("MultivariateNormal: loc is 0-dim: must have at least 1 dim")
        ((name, matrix),) = matrices.items()
        if matrix.ndim < 2 or matrix.shape[-2:] != (loc.shape[-1], loc.shape[-1]):
            raise ValueError(
                f"MultivariateNormal: {name} is {list(matrix.shape)}: must end in "
                f"{[loc.shape[-1]] * 2}"
            )
        batch = ops.broadcast_tensors(matrix[..., 0], loc)[1].shape[:-1]
        self.loc = loc.expand(*batch, loc.shape[-1])
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, loc.shape[-1:], validate_args)
        # Subclasses of packages override this name of PyTorch, so every method reads it.
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = linalg.cholesky(linalg.inv(matrix))

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Computes the matrices that were not given."""
            if name == "scale_tril":
                return self._tril_of_batch()
            if name == "covariance_matrix":
                tril = self._tril_of_batch()
                return tril @ tril.mT
            if name == "precision_matrix":
                tril = self._tril_of_batch()
                return linalg.inv(tril @ tril.mT)
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _tril_of_batch(self) -> Tensor:
        """Returns the Cholesky factor with the dimensions of the batch."""
        tril = self._unbroadcasted_scale_tril
        return tril.expand(*self.batch_shape, *tril.shape[-2:])

    def expand(self, batch_shape: Shape, _instance: Any = None) -> MultivariateNormal:
        shape, n = tuple(batch_shape), self.loc.shape[-1]
        loc, tril = self.loc.expand(*shape, n), self._tril_of_batch().expand(*shape, n, n)
        return self._expanded(
            MultivariateNormal(loc, scale_tril=tril, validate_args=self._validate_args), _instance
        )

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (self._tril_of_batch() ** 2).sum(-1)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = ops.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def mahalanobis(self, difference: Tensor) -> Tensor:
        """Returns the squared distance of a value from loc, measured by the covariance."""
        tril = self._unbroadcasted_scale_tril
        whitened = linalg.solve_triangular(tril, difference.unsqueeze(-1), upper=False)
        return (whitened**2).sum((-2, -1))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.loc.shape[-1]
        return -0.5 * (n * log(2 * pi) + self.mahalanobis(value - self.loc)) - self.half_log_det()

    def half_log_det(self) -> Tensor:
        """Returns half the log-determinant of the covariance matrix."""
        return ops.diagonal(self._tril_of_batch(), 0, -2, -1).log().sum(-1)

    def entropy(self) -> Tensor:
        n = self.loc.shape[-1]
        return 0.5 * n * (1 + log(2 * pi)) + self.half_log_det()
