"""lobpcg: a few eigenpairs of a large symmetric matrix, by the locally optimal block preconditioned
conjugate gradient method of Knyazev, 2001."""
from __future__ import annotations

from math import prod
from typing import Any

from . import _ops as ops
from ._tensor import Tensor
from ._types import float32, float64
from .autograd import Function, is_grad_enabled, no_grad
from .linalg import eigh, solve

EPSILON = {float32: 1.2e-07, float64: 2.23e-16}
TINY = 1e-30  # instead of norms that are 0


def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Any = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns the k largest eigenvalues of A, and their eigenvectors as columns, for A x = E B x.

    A, B: symmetric, dense or sparse, (…, m, m); B is positive definite, the identity if missing.
    X: (…, m, n), where the iteration begins; random if missing. n: the size of the block, k if
        missing; m must be at least 3 n.
    iK: preconditioner, an approximate inverse of A. niter: most iterations, 1000 if missing.
    tol: the largest relative residual. largest: False: the smallest eigenvalues.
    method: "ortho" or "basic", which compute the same here; ortho_… have no effect.

    Gradients are those of a dense A without B.
    """
    check(A, B, method, tracker)
    rows = A.shape[-1]
    if k is None:
        k = 1 if X is None else X.shape[-1]
    n = (n or k) if X is None else X.shape[-1]
    if not 1 <= k <= n:
        raise ValueError(f"lobpcg: k is {k}: must be 1 to {n}, the vectors of the block")
    if rows < 3 * n:
        raise ValueError(
            f"lobpcg: A has {rows} rows: must be at least 3 times the {n} vectors of the block"
        )
    batch = tuple(A.shape[:-2])
    if X is None:
        X = ops.randn(*batch, rows, n, dtype=A.dtype, device=A.device)
    if tuple(X.shape) != (*batch, rows, n):
        raise AssertionError(
            f"lobpcg: X is {list(X.shape)}: must be {[*batch, rows, n]}, as A and n say"
        )
    tol = EPSILON[A.dtype] ** 0.5 if tol is None else tol
    options = (1000 if niter is None else niter, tol, largest is None or bool(largest))
    needs_grad = A.requires_grad or (B is not None and B.requires_grad)
    if not (is_grad_enabled() and needs_grad):
        return eigenpairs(A, B, X, iK, k, options)
    if not isinstance(A, Tensor) or B is not None:
        reason = "A is sparse" if B is None else "B is given"
        raise ValueError(f"lobpcg: there is no gradient where {reason}: call detach()")
    return Differentiable.apply((A + A.mT) / 2, X, iK, k, options)


class Differentiable(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
        E, X = eigenpairs(A, None, *arguments)
        ctx.save_for_backward(A, E, X)
        return E, X

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        """A changes by dA: E by x.T dA x of each column x of X, which moves towards the other
        columns, and towards the rest of the space by the solution z of (e - A) z = dA x there."""
        E_grad, X_grad = grads
        A, E, X = ctx.saved_tensors
        gaps = E[..., None, :] - E[..., :, None]
        gaps = gaps.masked_fill(ops.eye(E.shape[-1], device=E.device).bool(), float("inf"))
        within = X @ (ops.diag_embed(E_grad) + X.mT @ X_grad / gaps)
        one = ops.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        inside = X @ X.mT
        outside = one - inside
        A = outside @ A @ outside
        shifted = E[..., None, None] * one - A[..., None, :, :]
        # The solution has no part inside; there the matrix is any that can be inverted.
        shifted = shifted @ outside[..., None, :, :] + inside[..., None, :, :]
        z = solve(shifted, (outside @ X_grad).mT[..., None])[..., 0]
        return (within + z.mT) @ X.mT, None, None, None, None


def eigenpairs(
    A: Any, B: Any, X: Tensor, iK: Any, k: int, options: tuple[int, float, bool]
) -> tuple[Tensor, Tensor]:
    """Returns k eigenpairs of each matrix of a batch; options: those of `iterate`."""
    *batch, rows, n = X.shape
    with no_grad():
        if not batch:
            return iterate(A, B, X, iK, k, *options)
        count = prod(batch)
        matrices = A.reshape(count, rows, rows)
        weights = [None] * count if B is None else B.reshape(count, rows, rows)
        pairs = zip(matrices, weights, X.reshape(count, rows, n))
        found = [iterate(a, b, x, iK, k, *options) for a, b, x in pairs]
        values = ops.stack([e for e, _ in found]).reshape(*batch, k)
        return values, ops.stack([x for _, x in found]).reshape(*batch, rows, k)


def check(A: Any, B: Any, method: str | None, tracker: Any) -> None:
    if A.ndim < 2 or A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"lobpcg: A is {list(A.shape)}: must be square")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"lobpcg: B is {list(B.shape)}: must be {list(A.shape)}, as A")
    if A.dtype not in EPSILON:
        raise TypeError(f"lobpcg: A is {A.dtype}: must be float32 or float64")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method is {method!r}: must be 'basic' or 'ortho'")
    if tracker is not None:
        raise NotImplementedError("lobpcg: tracker is not supported: must be None")


def iterate(
    A: Any, B: Any, X: Tensor, iK: Any, k: int, niter: int, tol: float, largest: bool
) -> tuple[Tensor, Tensor]:
    """Returns k eigenpairs of one matrix."""

    def product(matrix: Any, x: Tensor) -> Tensor:
        return x if matrix is None else matrix @ x

    n = X.shape[1]
    norm = X.norm()
    norms = product(A, X).norm() / norm, product(B, X).norm() / norm  # estimates of A's and B's
    E, X = rayleigh_ritz(A, B, X, n, largest)
    P = X[:, :0]  # the directions of the last step
    for _ in range(niter):
        BX = product(B, X)
        R = A @ X - BX * E
        bounds = tol * X.norm(dim=0) * (norms[0] + E.abs() * norms[1])
        if bool((R.norm(dim=0) <= bounds)[:k].all()):
            break
        W = product(iK, R)
        W = W - X @ (BX.T @ W)
        scales = W.norm(dim=0).clamp_min(TINY)
        E, found = rayleigh_ritz(A, B, ops.cat([X, W / scales, P], 1), n, largest)
        P = found - X @ (BX.T @ found)
        P = P / P.norm(dim=0).clamp_min(TINY)
        X = found
    return E[:k], X[:, :k]


def rayleigh_ritz(A: Any, B: Any, S: Tensor, n: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Returns the n best approximate eigenpairs in the space of S's columns."""
    basis = orthonormal(B, orthonormal(B, S))  # again, for the digits that the first loses
    values, vectors = eigh(basis.T @ (A @ basis))
    if largest:
        values, vectors = values.flip(0), vectors.flip(1)
    return values[:n], basis @ vectors[:, :n]


def orthonormal(B: Any, S: Tensor) -> Tensor:
    """Returns columns that span S's, orthonormal in the product of B, without those that depend on
    others."""
    gram = S.T @ (S if B is None else B @ S)
    scale = gram.diagonal().clamp_min(0).rsqrt()
    scale = ops.where(scale.isfinite(), scale, ops.zeros_like(scale))
    values, vectors = eigh(gram * scale * scale[:, None])
    independent = values > values[-1] * EPSILON[S.dtype] * S.shape[1]
    return (S * scale) @ (vectors[:, independent] * values[independent].rsqrt())
