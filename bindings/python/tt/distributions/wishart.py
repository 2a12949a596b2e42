"""The Wishart distribution of positive definite matrices."""
from __future__ import annotations

from math import log, nan
from typing import Any

from .. import _ops as ops
from .. import linalg
from .._create import tensor
from .._limits import finfo
from .._settings import broadcast_shapes
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution, Shape, check_all
from .gamma import Chi2

TYPE_CHECKING = False

__all__ = ["Wishart"]
MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")


class Wishart(Distribution):
    """The Wishart distribution with df degrees of freedom: X @ X.mT, for integers, of df normal
    columns with a covariance matrix.

    Exactly one of covariance_matrix, its inverse precision_matrix and its lower triangular Cholesky
    factor scale_tril is required. df must be greater than the number of rows less 1; below the
    number of rows, samples may be singular.
    """

    has_rsample = True
    support = constraints.positive_definite
    df: Tensor
    if TYPE_CHECKING:
        covariance_matrix: Tensor
        precision_matrix: Tensor
        scale_tril: Tensor

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = dict(zip(MATRICES, (covariance_matrix, precision_matrix, scale_tril)))
        matrices = {name: m for name, m in given.items() if m is not None}
        if len(matrices) != 1:
            raise ValueError(f"Wishart: takes exactly one of {', '.join(MATRICES)}")
        ((name, matrix),) = matrices.items()
        if matrix.ndim < 2 or matrix.shape[-2] != matrix.shape[-1]:
            raise ValueError(f"Wishart: {name} is {list(matrix.shape)}: must be square matrices")
        if not isinstance(df, Tensor):
            df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        n = matrix.shape[-1]
        rule = f"must be greater than {n - 1}"
        check_all(df > n - 1, f"Wishart: df {rule}", lambda: f"Wishart: df is {df}: {rule}")
        batch = broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        self.__dict__[name] = matrix.expand(*batch, n, n)
        super().__init__(batch, (n, n), validate_args)
        if name == "scale_tril":
            self._tril = self.__dict__[name]
        else:
            covariance = matrix if name == "covariance_matrix" else linalg.inv(matrix)
            self._tril = linalg.cholesky(covariance).expand(*batch, n, n)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Computes a matrix from the one that was given."""
            if name not in MATRICES or "_tril" not in self.__dict__:
                raise AttributeError(f"'Wishart' object has no attribute '{name}'")
            if name == "scale_tril":
                return self._tril
            covariance = self._tril @ self._tril.mT
            return covariance if name == "covariance_matrix" else linalg.inv(covariance)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Wishart:
        shape = tuple(batch_shape)
        name = next(name for name in MATRICES if name in self.__dict__)
        matrix = self.__dict__[name].expand(*shape, *self._event_shape)
        expanded: dict[str, Any] = {name: matrix}
        return self._expanded(
            Wishart(self.df.expand(shape), validate_args=self._validate_args, **expanded), _instance
        )

    def _scaled(self, factor: Tensor) -> Tensor:
        return factor[..., None, None] * self.covariance_matrix

    @property
    def mean(self) -> Tensor:
        return self._scaled(self.df)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return self._scaled(factor.masked_fill(factor <= 0, nan))

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(0, -2, -1)
        squares = covariance**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * squares

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws by Bartlett's decomposition: a normal lower triangle under the square roots of
        chi-squared numbers."""
        shape = self._extended_shape(sample_shape)
        row = ops.arange(shape[-1], dtype=self.df.dtype, device=self.df.device)
        squares = Chi2(self.df.unsqueeze(-1) - row, validate_args=False).rsample(sample_shape)
        diagonal = squares.sqrt().clamp(min=finfo(squares.dtype).eps).diag_embed()
        normal = ops.randn(shape, dtype=squares.dtype, device=squares.device).tril(-1)
        factor = self._tril @ (diagonal + normal)
        return factor @ factor.mT

    def half_log_det(self) -> Tensor:
        """Returns half the log-determinant of the covariance matrix."""
        return self._tril.diagonal(0, -2, -1).log().sum(-1)

    def digammas(self) -> Tensor:
        """Returns the derivative of mvlgamma at df / 2."""
        row = ops.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return ops.digamma((self.df.unsqueeze(-1) - row) / 2).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, df = self._event_shape[-1], self.df
        norm = df * (0.5 * n * log(2) + self.half_log_det()) + ops.mvlgamma(df / 2, n)
        trace = ops.cholesky_solve(value, self._tril).diagonal(0, -2, -1).sum(-1)
        return (df - n - 1) / 2 * linalg.slogdet(value)[1] - trace / 2 - norm

    def entropy(self) -> Tensor:
        n, df = self._event_shape[-1], self.df
        scale = (n + 1) * (0.5 * n * log(2) + self.half_log_det())
        degrees = ops.mvlgamma(df / 2, n) - (df - n - 1) / 2 * self.digammas()
        return scale + degrees + df * n / 2
