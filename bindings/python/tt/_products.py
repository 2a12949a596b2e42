"""Tensor products and norms with arguments that a declaration cannot express."""
from __future__ import annotations

from typing import Any, Sequence, Union

from . import _ops
from ._interception import overridable
from ._tensor import Tensor

Dims = Union[int, Sequence[int]]

__all__ = ["normalize", "tensordot"]


@overridable
def tensordot(
    a: Tensor, b: Tensor, dims: int | Sequence[Dims] | Tensor = 2, *, out: Tensor | None = None
) -> Tensor:
    """Contracts dimensions of both operands: sums the products of their elements.

    dims: n, for the last n dimensions of a and the first n of b; or a list of dimensions of a and
    one of b, paired in order. out: receives the result.
    """
    given: Any = dims.tolist() if isinstance(dims, Tensor) else dims
    if isinstance(given, int):
        if given < 0:
            raise ValueError(f"tensordot: dims is {given}: must not be negative")
        of_a, of_b = list(range(-given, 0)), list(range(given))
    else:
        of_a, of_b = ([d] if isinstance(d, int) else list(d) for d in given)
    return _ops.tensordot(a, b, of_a, of_b, out=out)


@overridable
def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int | Sequence[int] = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
    *,
    axis: int | Sequence[int] | None = None,
) -> Tensor:
    """Divides vectors along dim by their p-norms.

    dim: dimension of the vectors, or several. eps: lower bound of the norms. out: receives the
    result.
    """
    if axis is not None:
        dim = axis
    if not isinstance(dim, (tuple, list)):
        return _ops.normalize(input, p, dim, eps, out=out)
    norms = _ops.linalg_vector_norm(input, p, dim, True)
    return _ops.div(input, _ops.clamp_min(norms, eps), out=out)
