"""The LKJ distribution of Cholesky factors of correlation matrices."""
from __future__ import annotations

from math import log, pi
from typing import Any

from .. import _ops as ops
from .._limits import finfo
from .._tensor import Tensor
from ..autograd import no_grad
from . import constraints
from .distribution import Distribution, broadcast_all
from .distribution import Shape
from .gamma import Beta

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The distribution of Cholesky factors L of correlation matrices L @ L.mT of dim rows, whose
    density is proportional to det(L @ L.mT) ** (concentration - 1).

    Samples are made by the onion method of Lewandowski, Kurowicka and Joe (2009), row by row.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim is {dim}: must be at least 2")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _vector_shape(self, constraint: constraints.Constraint) -> tuple[int, ...]:
        return ()

    def _squared_lengths(self) -> Beta:
        """Returns the distribution of the squared lengths of the rows left of the diagonal."""
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        row = ops.arange(self.dim, **like).clamp(min=1) - 1  # the first row, which is 0, is any
        rest = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2)
        return Beta(row + 0.5, rest - 0.5 * row, validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with no_grad():
            squared = self._squared_lengths().sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            normal = ops.randn(shape, dtype=squared.dtype, device=squared.device).tril(-1)
            length = (normal**2).sum(-1, keepdim=True).sqrt().clamp(min=finfo(squared.dtype).tiny)
            left = squared.sqrt() * normal / length
            rest = (1 - (left**2).sum(-1)).clamp(min=finfo(squared.dtype).tiny)
            return left + rest.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, c = self.dim - 1, self.concentration
        row = ops.arange(2, self.dim + 1, dtype=c.dtype, device=c.device)
        order = 2 * (c - 1).unsqueeze(-1) + self.dim - row
        density = (order * value.diagonal(0, -2, -1)[..., 1:].log()).sum(-1)
        alpha = c + 0.5 * n  # page 1999 of the paper
        norm = ops.mvlgamma(alpha - 0.5, n) - ops.lgamma(alpha) * n + 0.5 * n * log(pi)
        return density - norm
