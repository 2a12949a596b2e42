"""Linear algebra of the array API standard."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from .. import _ops as ops
from .. import linalg as _linalg
from .._limits import finfo
from .._tensor import Tensor
from .._types import dtype as DType
from ._dtypes import promoted
from ._manipulation import axes_of

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
QRResult = namedtuple("QRResult", "Q R")
SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")
SVDResult = namedtuple("SVDResult", "U S Vh")

# ---- products ----


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the matrix product."""
    return ops.matmul(*promoted(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Returns a view with the last two dimensions exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x has {x.ndim} dimensions: must have at least 2")
    return x.mT


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the products of all pairs of elements of two vectors."""
    return ops.outer(*promoted(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Returns the sums of products over axes of both arrays."""
    from .._products import tensordot

    a, b = promoted(x1, x2)
    if not isinstance(axes, int):
        axes = tuple(tuple(part) for part in axes)
    return tensordot(a, b, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns the sums over an axis of conj(x1) * x2."""
    a, b = promoted(x1, x2)
    a = ops.conj(a) if a.dtype.is_complex else a
    return (a * b).sum(axis, dtype=a.dtype)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns the vector products of vectors of 3 elements along an axis."""
    return ops.cross(*promoted(x1, x2), dim=axis)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Returns the n-th power of matrices."""
    return ops.matrix_power(x, n)


# ---- parts and norms ----


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Returns the diagonals of the matrices in the last two dimensions."""
    return ops.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """Returns the sums of the diagonals of matrices."""
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Returns the norms of vectors along axes."""
    axes = tuple(range(x.ndim)) if axis is None else axes_of(axis)
    if not axes:
        return (x != 0).to(abs(x).dtype) if ord == 0 else abs(x)
    return _linalg.vector_norm(x, ord, axes, keepdims)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Returns the norms of matrices."""
    return _linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Returns the ranks of matrices: the numbers of singular values above rtol times the
    largest."""
    values = _linalg.svdvals(x)
    if not values.shape[-1]:
        return ops.zeros(x.shape[:-2], dtype=ops.argmax(ops.zeros(1)).dtype)
    return (values > tolerance(x, values, rtol)).sum(-1)


def tolerance(x: Tensor, values: Tensor, rtol: Any) -> Tensor:
    """Returns the number below which singular values count as 0."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(values.dtype).eps
    relative = rtol.unsqueeze(-1) if isinstance(rtol, Tensor) and rtol.ndim else rtol
    return relative * values.amax(-1, keepdim=True)


# ---- factors and solutions ----


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Returns the lower triangular L of x = L L^H; upper: the upper triangular U of U^H U."""
    return _linalg.cholesky(x, upper=upper)


def det(x: Tensor, /) -> Tensor:
    """Returns the determinants of matrices."""
    return _linalg.det(x)


def eigh(x: Tensor, /) -> EighResult:
    """Returns eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return EighResult(*_linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Returns the eigenvalues of symmetric or Hermitian matrices."""
    return _linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Returns the inverses of matrices."""
    return _linalg.inv(x)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Returns the pseudo-inverses of matrices."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    return _linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Returns Q and R of x = Q R. mode: "reduced" or "complete"."""
    return QRResult(*_linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Returns sign and logarithm of the absolute value of determinants."""
    return SlogdetResult(*_linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the solutions X of x1 X = x2; a 1-d x2 is one vector."""
    a, b = promoted(x1, x2)
    if b.ndim == 1:
        return _linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    shape = ops.broadcast_tensors(a[..., :0, :0], b[..., :0, :0])[0].shape[:-2]
    return _linalg.solve(a.expand(*shape, *a.shape[-2:]), b.expand(*shape, *b.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Returns U, S and V^H of x = U S V^H."""
    return SVDResult(*_linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Returns the singular values of matrices."""
    return _linalg.svdvals(x)
