"""Parametrizations of weights, with the API of torch.nn.utils.parametrizations."""
from __future__ import annotations

from typing import Any

from ... import _ops as ops
from ... import linalg
from ..._limits import finfo
from ..._tensor import Tensor
from ..._dtype_names import int32
from ...autograd import no_grad
from ..conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..module import Module
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def tensor_of(module: Module, name: str) -> Tensor:
    """Returns module.name, which must be a tensor."""
    t = getattr(module, name, None)
    if not isinstance(t, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return t


def output_dimension(module: Module) -> int:
    """Returns the dimension of the output channels of a weight."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


# ---- weight_norm ----


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """Returns the norm of each slice v.select(dim, i), with v's number of dimensions.

    dim=-1: the norm of the whole tensor, 0-dim.
    """
    if dim == -1:
        return v.norm()
    if not 0 <= dim < v.ndim:
        raise IndexError(f"dim is {dim}: must be -1, or less than {v.ndim}")
    norms = v.transpose(0, dim).reshape(v.shape[dim], -1).norm(2.0, 1)
    return norms.reshape([-1 if d == dim else 1 for d in range(v.ndim)])


def weight_of(g: Tensor, v: Tensor, dim: int) -> Tensor:
    return v * (g / norm_except_dim(v, dim))


class _WeightNorm(Module):
    """weight = g * v / |v|, with a norm for each slice along dim."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_g, weight_v, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrizes a weight by its norms, original0, and its directions, original1: Salimans and
    Kingma, 2016.

    dim: there is a norm for each index in this dimension; None: one norm.
    Also loads state dicts of the former nn.utils.weight_norm.
    """
    tensor_of(module, name)
    parametrization = _WeightNorm(dim)
    register_parametrization(module, name, parametrization, unsafe=True)

    def rename(module: Module, state_dict: Any, prefix: str, *_: Any) -> None:
        former = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in former):
            for i, key in enumerate(former):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module.register_load_state_dict_pre_hook(rename)
    return module


# ---- spectral_norm ----


def normalized(x: Tensor, eps: float) -> Tensor:
    return x / x.norm().clamp(min=eps)


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, which power iterations estimate in
    training."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of "
                f"[-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got {n_power_iterations}"
            )
        self.dim = dim % weight.ndim
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            matrix = self._as_matrix(weight.detach())
            rows, columns = matrix.shape
            like = {"dtype": weight.dtype, "device": weight.device}
            self.register_buffer("_u", normalized(ops.empty(rows, **like).normal_(0, 1), eps))
            self.register_buffer("_v", normalized(ops.empty(columns, **like).normal_(0, 1), eps))
            self._iterate(matrix, 15)

    def _as_matrix(self, weight: Tensor) -> Tensor:
        """Returns the weight as a matrix with a row for each index in dim."""
        return weight.movedim(self.dim, 0).flatten(1) if weight.ndim > 1 else weight

    def _iterate(self, matrix: Tensor, n: int) -> None:
        with no_grad():
            for _ in range(n):
                self._u.copy_(normalized(matrix.mv(self._v), self.eps))
                self._v.copy_(normalized(matrix.mH.mv(self._u), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalized(weight, self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # later iterations change the buffers
        return weight / ops.vdot(u, matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Parametrizes a weight by itself divided by its largest singular value: Miyato et al., 2018.

    n_power_iterations: number of iterations per computation in training.
    eps: smallest norm by which is divided.
    dim: dimension of the outputs; None: 1 for transposed convolutions, else 0.
    """
    weight = tensor_of(module, name)
    if dim is None:
        dim = output_dimension(module)
    parametrization = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, parametrization)


# ---- orthogonal ----


def orthogonal_factor(A: Tensor) -> Tensor:
    """Returns Q of the QR decomposition of A with a positive diagonal of R."""
    a, tau = ops.geqrf(A)
    Q = linalg.householder_product(a, tau)
    return Q * a.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def is_orthogonal(Q: Tensor) -> bool:
    eye = ops.eye(Q.shape[-1], dtype=Q.dtype, device=Q.device)
    eps = 10 * Q.shape[-2] * finfo(Q.dtype).eps
    return bool(ops.isclose(Q.mH @ Q, eye, atol=eps).all())


class _Orthogonal(Module):
    """Maps a matrix to an orthogonal one: by matrix_exp or the Cayley map of its skew-symmetric
    part, or as the product of the Householder reflections of its columns.

    base: with use_trivialization, the matrix that the original is relative to.
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map, self.use_trivialization = orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        if wide:
            X = X.mT
        Q = self._reflected(X) if self.orthogonal_map == "householder" else self._mapped(X)
        if self.use_trivialization and self.base is not None:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _mapped(self, X: Tensor) -> Tensor:
        """Maps the skew-symmetric matrix of the lower triangle."""
        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            more = ops.zeros((*X.shape[:-1], n - k), dtype=X.dtype, device=X.device)
            X = ops.cat([X, more], -1)
        A = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            return linalg.matrix_exp(A)[..., :k]
        eye = ops.eye(n, dtype=A.dtype, device=A.device)
        return linalg.solve(eye - 0.5 * A, eye + 0.5 * A)[..., :k]

    def _reflected(self, X: Tensor) -> Tensor:
        """Returns the product of reflections; the signs of the diagonal are those of X."""
        A = X.tril(-1)
        tau = 2 / (1 + (A * A).sum(-2))
        signs = X.detach().diagonal(dim1=-2, dim2=-1).to(int32).to(X.dtype)
        return linalg.householder_product(A, tau) * signs.unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {tuple(self.shape)}. "
                f"Got a tensor of shape {tuple(Q.shape)}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        if not self.use_trivialization:
            return self._reflections(tall, wide)
        n, k = tall.shape[-2:]
        if n == k:
            base = tall.clone() if is_orthogonal(tall) else orthogonal_factor(tall)
        else:
            drawn = ops.randn((*tall.shape[:-1], n - k), dtype=tall.dtype, device=tall.device)
            base = orthogonal_factor(ops.cat([tall, drawn], -1))
        self.base = base
        minus_eye = -ops.eye(Q.shape[-2], Q.shape[-1], dtype=Q.dtype, device=Q.device)
        return minus_eye.expand(Q.shape).clone()

    def _reflections(self, tall: Tensor, wide: bool) -> Tensor:
        """Inverts _reflected: returns the reflections of an orthogonal matrix."""
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        A, tau = ops.geqrf(tall)
        signs = A.diagonal(dim1=-2, dim2=-1).sign()
        signs = ops.where(tau == 0, -signs, signs)
        A = with_diagonal(A, signs)
        return A.mT if wide else A


def with_diagonal(A: Tensor, values: Tensor) -> Tensor:
    """Returns a copy with another diagonal."""
    result = A.clone()
    result.diagonal(dim1=-2, dim2=-1).copy_(values)
    return result


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Parametrizes a matrix, or a batch of them, so that its columns are orthonormal, or its rows
    if there are fewer.

    orthogonal_map: "matrix_exp", "cayley" or "householder"; None: matrix_exp for square or complex
        matrices, else householder.
    use_trivialization: makes the original relative to a fixed orthogonal matrix, so that any matrix
        may be assigned.
    """
    weight = tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)
