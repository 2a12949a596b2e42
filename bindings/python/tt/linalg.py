"""Linear algebra, with the API of torch.linalg: names of arguments, too. A, or input, is a matrix
(m, n) or a batch (…, m, n)."""
from __future__ import annotations

from typing import NamedTuple, Sequence, Union

from . import _ops
from ._convert import written
from ._create import tensor
from ._interception import overridable
from ._tensor import Tensor
from ._types import dtype as DType
from .errors import InvalidArgumentError, ShapeError
from .errors import LinAlgError as LinAlgError

Dims = Union[int, Sequence[int], None]
Outs = tuple[Tensor, ...]

__all__ = """cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh
householder_product inv inv_ex ldl_factor ldl_factor_ex ldl_solve LinAlgError lstsq lu lu_factor
lu_factor_ex lu_solve matmul matrix_exp matrix_norm matrix_power matrix_rank matrix_sqrth multi_dot
norm pinv polar qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv tensorsolve vander
vecdot vector_norm""".split()


# ---- functions of decompositions ----


@overridable
def matrix_sqrth(A: Tensor) -> Tensor:
    """Returns the symmetric or Hermitian square root of positive-definite matrices, of which the
    lower triangles are read. It has no gradient where eigenvalues are equal."""
    values, vectors = _ops.linalg_eigh(A)
    return (vectors * values.sqrt().unsqueeze(-2)) @ vectors.mH


class Polar(NamedTuple):
    """The result of polar."""

    U: Tensor
    H: Tensor


@overridable
def polar(A: Tensor, *, out: Outs | None = None) -> Polar:
    """Returns U, with orthonormal columns, and the positive-semidefinite H with A = U @ H.

    A has at least as many rows as columns. It has no gradient where singular values are equal.
    out: receives both.
    """
    if A.ndim < 2 or A.shape[-2] < A.shape[-1]:
        raise ShapeError(f"polar: A is {list(A.shape)}: must have as many rows as columns, or more")
    left, values, right = _ops.linalg_svd(A, full_matrices=False)
    found = Polar(left @ right, (right.mH * values.unsqueeze(-2)) @ right)
    return found if out is None else Polar(*written(found, out, "polar", exact=True))


# ---- norms ----


@overridable
def vector_norm(
    input: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the norm of order `ord` of the elements along the listed dimensions.

    input: floating or complex. dim: None for all dimensions. keepdim: keeps them with size 1.
    dtype: converts input first. out: receives the result.
    """
    return _ops.norm(input, ord, dim, keepdim=keepdim, dtype=dtype, out=out)


@overridable
def matrix_norm(
    input: Tensor,
    ord: float | str = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the norms of matrices.

    ord: "fro": the 2-norm of the elements; "nuc", 2, -2: the sum, the largest and the smallest of
    the singular values; 1, -1: the largest and the smallest sum of the absolute values of a column;
    inf, -inf: of a row. dim: the dimensions of rows and columns. keepdim: keeps them with size 1.
    dtype: converts input first. out: receives the result.
    """
    dims = list(dim)
    if len(dims) != 2:
        raise InvalidArgumentError(f"matrix_norm: dim is {dim}: must be two dimensions")
    norm_of = _ops.linalg_matrix_norm_str if isinstance(ord, str) else _ops.linalg_matrix_norm
    return norm_of(input, ord, dims, keepdim=keepdim, dtype=dtype, out=out)


@overridable
def norm(
    input: Tensor,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """Returns the norms of vectors, or of matrices if `ord` is given and two dimensions are
    reduced.

    ord: an order of vector_norm or of matrix_norm; None: the 2-norm of the elements. dim: one
    dimension, or the two of matrices; None for all. keepdim: keeps them with size 1. dtype:
    converts input first. out: receives the result.
    """
    if isinstance(ord, str):
        dims = range(input.ndim) if dim is None else dim
        dims = [dims] if isinstance(dims, int) else list(dims)
        if len(dims) != 2:
            raise InvalidArgumentError(f"norm: ord is {ord!r}, dim is {dim}: must be a matrix")
        return _ops.linalg_matrix_norm_str(input, ord, dims, keepdim=keepdim, dtype=dtype, out=out)
    return _ops.linalg_norm(input, ord, dim, keepdim=keepdim, dtype=dtype, out=out)


@overridable
def cond(input: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Returns the condition numbers, the norm of a matrix times that of its inverse; inf for a
    singular matrix.

    p: an order of matrix_norm; None: 2. out: receives the result.
    """
    if isinstance(p, str):
        return _ops.linalg_cond_str(input, p, out=out)
    return _ops.linalg_cond(input, p, out=out)


# ---- determinants, inverses, systems ----


@overridable
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the determinants. out: receives the result."""
    return _ops.linalg_det(A, out=out)


@overridable
def slogdet(A: Tensor, *, out: Outs | None = None) -> Outs:
    """Returns the sign and the logarithm of the absolute value of the determinants: (sign,
    logabsdet). out: receives them."""
    return _ops.linalg_slogdet(A, out=out)


@overridable
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the inverses. Fails with LinAlgError if a matrix is singular. out: receives the
    result."""
    return _ops.linalg_inv(A, out=out)


@overridable
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Outs | None = None) -> Outs:
    """Returns the inverses and info: (inverse, info). info is 0, or the first position, from 1, of
    a zero on the diagonal of U in A = P L U.

    check_errors: fails if info is not 0. out: receives the results.
    """
    return _ops.linalg_inv_ex(A, check_errors, out=out)


@overridable
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Returns the solution X of A @ X = B. Fails with LinAlgError if a matrix is singular.

    B: (…, n, k), or (…, n), one vector for each matrix. left: False: X @ A = B. out: receives the
    result.
    """
    return _ops.linalg_solve(A, B, left, out=out)


@overridable
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Outs | None = None
) -> Outs:
    """Returns the solution X of A @ X = B and info: (result, info). info is 0, or the first
    position, from 1, of a zero on the diagonal of U in A = P L U.

    left: False: X @ A = B. check_errors: fails if info is not 0. out: receives the results.
    """
    return _ops.linalg_solve_ex(A, B, left, check_errors, out=out)


@overridable
def solve_triangular(
    input: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the solution X of input @ X = B with a triangular input.

    upper: whether input is upper triangular. left: False: X @ input = B. unitriangular: takes the
    diagonal of input as 1. out: receives the result.
    """
    return _ops.linalg_solve_triangular(input, B, upper, left, unitriangular, out=out)


@overridable
def tensorinv(input: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Returns the inverse with respect to tensordot over the first `ind` dimensions. out: receives
    the result."""
    return _ops.linalg_tensorinv(input, ind, out=out)


@overridable
def tensorsolve(
    A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Returns the solution X of tensordot(A, X, X.ndim) = B.

    dims: dimensions of A that are moved to its end first. out: receives the result.
    """
    return _ops.linalg_tensorsolve(A, B, dims, out=out)


# ---- factors ----


@overridable
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Outs | None = None
) -> Outs:
    """Returns (LU, pivots, info): the factors of A = P L U in one matrix, the exchanges of rows,
    from 1, and 0 or the first position of a zero on the diagonal of U.

    pivot: must be True. check_errors: fails if info is not 0. out: receives the results.
    """
    return _ops.linalg_lu_factor_ex(A, pivot, check_errors, out=out)


@overridable
def lu_factor(A: Tensor, *, pivot: bool = True, out: Outs | None = None) -> Outs:
    """Returns (LU, pivots): the factors of A = P L U in one matrix and the exchanges of rows, from
    1.

    pivot: must be True. out: receives the results.
    """
    return _ops.linalg_lu_factor(A, pivot, out=out)


@overridable
def lu(A: Tensor, *, pivot: bool = True, out: Outs | None = None) -> Outs:
    """Returns (P, L, U) with A = P @ L @ U.

    pivot: must be True. out: receives the results.
    """
    return _ops.linalg_lu(A, pivot, out=out)


@overridable
def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the solution X of A @ X = B with the factors that lu_factor returned.

    left: False: X @ A = B. adjoint: replaces A by its conjugate transpose. out: receives the
    result.
    """
    return _ops.linalg_lu_solve(LU, pivots, B, left, adjoint, out=out)


@overridable
def cholesky_ex(
    input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Outs | None = None
) -> Outs:
    """Returns (L, info): the factor of input = L @ L.mH, and 0 or the size of the smallest leading
    block that is not positive definite.

    upper: returns L.mH. check_errors: fails if info is not 0. out: receives the results.
    """
    return _ops.linalg_cholesky_ex(input, upper, check_errors, out=out)


@overridable
def cholesky(input: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Returns the factor of input = L @ L.mH. Fails with LinAlgError if a matrix is not positive
    definite.

    upper: returns L.mH. out: receives the result.
    """
    return _ops.linalg_cholesky(input, upper, out=out)


@overridable
def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Outs | None = None
) -> Outs:
    """Returns (LD, pivots, info) of A = L D L^T for a symmetric A. Only the lower triangle is read.

    hermitian: A = L D L^H. check_errors: fails if info is not 0. out: receives the results.
    """
    return _ops.linalg_ldl_factor_ex(A, hermitian, check_errors, out=out)


@overridable
def ldl_factor(input: Tensor, *, hermitian: bool = False, out: Outs | None = None) -> Outs:
    """Returns (LD, pivots) of symmetric input = L D L^T. Only the lower triangle is read.

    hermitian: input = L D L^H. out: receives the results.
    """
    return _ops.linalg_ldl_factor(input, hermitian, out=out)


@overridable
def ldl_solve(
    LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None
) -> Tensor:
    """Returns the solution X of A @ X = B with the factors that ldl_factor returned.

    hermitian: A = L D L^H. out: receives the result.
    """
    return _ops.linalg_ldl_solve(LD, pivots, B, hermitian, out=out)


@overridable
def qr(A: Tensor, mode: str = "reduced", *, out: Outs | None = None) -> Outs:
    """Returns (Q, R) with A = Q @ R, orthonormal columns of Q and an upper triangular R.

    mode: "complete": square Q; "r": an empty Q. out: receives the results.
    """
    return _ops.linalg_qr(A, mode, out=out)


@overridable
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the first columns of the product of the reflections that geqrf returned. out:
    receives the result."""
    return _ops.linalg_householder_product(A, tau, out=out)


# ---- eigenvalues, singular values ----


@overridable
def eigh(input: Tensor, UPLO: str = "L", *, out: Outs | None = None) -> Outs:
    """Returns (eigenvalues, eigenvectors) of Hermitian matrices, in ascending order.

    UPLO: the triangle that is read. out: receives the results.
    """
    return _ops.linalg_eigh(input, UPLO.upper(), out=out)


@overridable
def eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Returns the eigenvalues of Hermitian matrices, in ascending order.

    UPLO: the triangle that is read. out: receives the result.
    """
    return _ops.linalg_eigvalsh(input, UPLO.upper(), out=out)


@overridable
def eig(input: Tensor, *, out: Outs | None = None) -> Outs:
    """Returns (eigenvalues, eigenvectors), complex numbers. out: receives them."""
    return _ops.linalg_eig(input, out=out)


@overridable
def eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the eigenvalues, complex numbers. out: receives them."""
    return _ops.linalg_eigvals(input, out=out)


def check_driver(driver: str | None, function: str) -> None:
    if driver is not None:
        raise InvalidArgumentError(f"{function}: driver is {driver!r}: must be None on the CPU")


@overridable
def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Outs | None = None
) -> Outs:
    """Returns (U, S, Vh) with A = U @ diag(S) @ Vh and S in descending order.

    full_matrices: makes U and Vh square. driver: must be None. out: receives the results.
    """
    check_driver(driver, "svd")
    return _ops.linalg_svd(A, full_matrices, out=out)


@overridable
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Returns the singular values, in descending order. driver: must be None. out: receives the
    result."""
    check_driver(driver, "svdvals")
    return _ops.linalg_svdvals(A, out=out)


def as_tolerance(value: float | Tensor | None, A: Tensor) -> Tensor | None:
    if value is None or isinstance(value, Tensor):
        return value
    return tensor(float(value), dtype=_ops.real(A).dtype, device=A.device)


@overridable
def matrix_rank(
    input: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the number of singular values above the tolerance, for each matrix.

    tol: a synonym of atol, with an rtol of 0. hermitian: input is Hermitian. atol: default 0. rtol:
    relative to the largest; default: max(m, n) times the epsilon of the dtype, or 0 where atol is
    positive. out: receives the result.
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    low, relative = as_tolerance(atol, input), as_tolerance(rtol, input)
    return _ops.linalg_matrix_rank(input, low, relative, hermitian, out=out)


@overridable
def pinv(
    input: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the Moore-Penrose inverses. Singular values up to the tolerance count as 0.

    rcond: a synonym of rtol. hermitian: input is Hermitian. atol: default 0. rtol: relative to the
    largest; default: max(m, n) times the epsilon of the dtype, or 0 where atol is positive. out:
    receives the result.
    """
    low, relative = as_tolerance(atol, input), as_tolerance(rcond if rtol is None else rtol, input)
    return _ops.linalg_pinv(input, low, relative, hermitian, out=out)


@overridable
def lstsq(
    A: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: Outs | None = None,
) -> Outs:
    """Returns (solution, residuals, rank, singular_values) of the least squares problem min
    ||A @ X - B||. Results that the driver does not compute are empty.

    rcond: singular values up to rcond times the largest count as 0; default: max(m, n) times the
    epsilon of the dtype. driver: "gelsy", the default, "gels", "gelsd" or "gelss". out: receives
    the results.
    """
    return _ops.linalg_lstsq(A, B, rcond, driver or "gelsy", out=out)


# ---- products ----


@overridable
def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Returns the cross products of vectors of 3 elements along dim. out: receives the result."""
    return _ops.cross(input, other, dim, out=out)


@overridable
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Returns the dot products along dim; complex elements of x are conjugated. out: receives the
    result."""
    return _ops.linalg_vecdot(x, y, dim, out=out)


@overridable
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the product of matrices, as tt.matmul. out: receives the result."""
    return _ops.matmul(input, other, out=out)


@overridable
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Returns the n-th powers, of the inverses if n is negative. out: receives the result."""
    return _ops.linalg_matrix_power(input, n, out=out)


@overridable
def matrix_exp(input: Tensor) -> Tensor:
    """Returns the exponentials of matrices."""
    return _ops.matrix_exp(input)


@overridable
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Returns the product of two or more matrices, in the order with the fewest multiplications.

    The first and the last tensor may be vectors: a row and a column. out: receives the result.
    """
    return _ops.linalg_multi_dot(list(tensors), out=out)


@overridable
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Returns a view of the diagonals of the matrices in dimensions dim1 and dim2.

    offset: 0: the main diagonal; k > 0: the k-th above it; k < 0: the k-th below it.
    """
    return _ops.diagonal(A, offset, dim1, dim2)


@overridable
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Returns Vandermonde matrices: the powers 0 … N - 1 of the elements of x as columns.

    N: None for the last size of x.
    """
    return _ops.linalg_vander(x, N)


def __dir__() -> list[str]:
    return __all__
