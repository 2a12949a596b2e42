"""Helpers for distributions of one's own, with the API of torch.distributions.utils."""
from __future__ import annotations

from typing import Any, Callable

from .. import _ops as ops
from .._tensor import Tensor
from .._types import device, dtype
from ..autograd import enable_grad
from .distribution import broadcast_all, clamped, last_dims_summed

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]
clamp_probs = clamped
_sum_rightmost = last_dims_summed


def _standard_normal(shape: Any, dtype: dtype, device: device) -> Tensor:
    """Returns standard normal noise."""
    return ops.randn(shape, dtype=dtype, device=device)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Returns the softmax over the last dimension; is_binary: the sigmoid."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Returns the logarithms of probabilities; is_binary: of their odds."""
    safe = clamped(probs)
    return safe.log() - (-safe).log1p() if is_binary else safe.log()


class lazy_property:
    """A property that is computed when it is first read, with gradients, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Returns lower triangular matrices with the elements of vec row by row. diag: the highest
    diagonal that is not zero."""
    length = vec.shape[-1]
    n = round(((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5)
    n = (n - 1 - 2 * diag) // 2
    rows, columns = ops.tril_indices(n, n, diag, device=vec.device)
    if len(rows) != length:
        raise ValueError(f"vec_to_tril_matrix: vec has {length} elements: no triangle has so many")
    matrix = ops.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype, device=vec.device)
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Returns the elements of the lower triangle row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag is {diag}: must be in [{-n}, {n - 1}]")
    rows, columns = ops.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def __dir__() -> list[str]:
    return __all__
