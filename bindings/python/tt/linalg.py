"""Linear algebra, by the names of torch.linalg."""
from __future__ import annotations

from . import _ops
from .errors import InvalidArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from ._tensor import Tensor
    from ._types import dtype as DType

__all__ = ["cross", "diagonal", "multi_dot", "vander", "vector_norm"]


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the norm of order `ord` of the elements along the listed dimensions.

    x: floating or complex. dim: None for all dimensions. keepdim: keeps them with size 1.
    dtype: converts x first. out: receives the result.
    """
    return _ops.norm(x, ord, dim, keepdim=keepdim, dtype=dtype, out=out)


def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Returns the cross products of vectors of 3 elements along dim. out: receives the result."""
    return _ops.cross(input, other, dim, out=out)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Returns a view of the diagonals of the matrices in dimensions dim1 and dim2.

    offset: 0: the main diagonal; k > 0: the k-th above it; k < 0: the k-th below it.
    """
    return _ops.diagonal(A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Returns Vandermonde matrices: the powers 0 … N - 1 of the elements of x as columns.

    N: None for the last size of x.
    """
    return _ops.vander(x, N, True)


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Returns the product of two or more matrices, in the order with the fewest multiplications.

    The first and the last tensor may be vectors: a row and a column. out: receives the result.
    """
    matrices = list(tensors)
    if len(matrices) < 2:
        raise InvalidArgumentError(f"multi_dot: {len(matrices)} tensors: at least 2 are needed")
    row, column = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if row:
        matrices[0] = matrices[0].unsqueeze(0)
    if column:
        matrices[-1] = matrices[-1].unsqueeze(1)
    product = _ops.chain_matmul(matrices)
    if column:
        product = product.squeeze(-1)
    if row:
        product = product.squeeze(0)
    return product if out is None else _ops.clone(product, out=out)
