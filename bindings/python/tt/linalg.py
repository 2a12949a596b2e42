"""Linear algebra, by the names of torch.linalg."""
from __future__ import annotations

from . import _ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from ._tensor import Tensor
    from ._types import dtype as DType

__all__ = ["vector_norm"]


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
