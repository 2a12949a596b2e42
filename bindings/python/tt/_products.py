"""Tensor products with arguments that a declaration cannot express."""
from __future__ import annotations

from . import _ops
from ._interception import overridable
from ._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence, Union

    Dims = Union[int, Sequence[int]]

__all__ = ["tensordot"]


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
