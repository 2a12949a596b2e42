"""Parametrizations of weights, by the names of torch.nn.utils.parametrizations."""
from __future__ import annotations

from ... import _ops as ops
from ..._tensor import Tensor
from ...autograd import no_grad
from ..conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..module import Module
from .parametrize import register_parametrization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


class WeightNorm(Module):
    """weight = g * v / |v|, with a norm for each index in dim."""

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
    State dicts of the former nn.utils.weight_norm are loaded, too.
    """
    tensor_of(module, name)
    parametrization = WeightNorm(dim)
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


class SpectralNorm(Module):
    """weight / (its largest singular value), which power iterations estimate in training."""

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
        """Returns the weight as a matrix whose rows are those of dim."""
        return weight.movedim(self.dim, 0).flatten(1) if weight.ndim > 1 else weight

    def _iterate(self, matrix: Tensor, n: int) -> None:
        with no_grad():
            for _ in range(n):
                self._u.copy_(normalized(matrix.mv(self._v), self.eps))
                self._v.copy_(normalized(matrix.t().mv(self._u), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalized(weight, self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # later iterations change the buffers
        return weight / ops.dot(u, matrix.mv(v))

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

    n_power_iterations: number of iterations for each computation in training.
    eps: smallest norm by which is divided.
    dim: dimension of the outputs; None: 1 for transposed convolutions, else 0.
    """
    weight = tensor_of(module, name)
    if dim is None:
        dim = output_dimension(module)
    parametrization = SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, parametrization)
