"""weight_norm and spectral_norm by forward pre-hooks, the API before parametrizations."""
from __future__ import annotations

from typing import Any, TypeVar

from ... import _ops as ops
from ..._tensor import Tensor
from ...autograd import no_grad
from ..module import Module
from ..parameter import Parameter
from .parametrizations import norm_except_dim, normalized, output_dimension, weight_of

M = TypeVar("M", bound=Module)


def hook_of(module: Module, kind: type, name: str) -> int | None:
    """Returns the key of the module's forward pre-hook of this class for this name."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and getattr(hook, "name") == name:
            return number
    return None


def add_hook(module: Module, hook: Any, what: str) -> None:
    if hook_of(module, type(hook), hook.name) is not None:
        raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {hook.name}")
    if module._parameters.get(hook.name) is None:
        raise ValueError(f"'{module}' has no parameter '{hook.name}': {what} needs one")
    hook.install(module)
    module.register_forward_pre_hook(hook)


def remove_hook(module: Module, kind: type, name: str, what: str) -> None:
    number = hook_of(module, kind, name)
    if number is None:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    hook = module._forward_pre_hooks.pop(number)
    hook.uninstall(module)


class WeightNorm:
    """A forward pre-hook that computes a weight from the parameters NAME_g and NAME_v."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def install(self, module: Module) -> None:
        weight = getattr(module, self.name)
        delattr(module, self.name)
        g = Parameter(norm_except_dim(weight.detach(), self.dim))
        module.register_parameter(self.name + "_g", g)
        module.register_parameter(self.name + "_v", Parameter(weight))
        setattr(module, self.name, self.compute_weight(module))

    def uninstall(self, module: Module) -> None:
        weight = self.compute_weight(module)
        for name in (self.name, self.name + "_g", self.name + "_v"):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight))

    def compute_weight(self, module: Module) -> Tensor:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return weight_of(g, v, self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


class SpectralNorm:
    """A forward pre-hook that divides the parameter NAME_orig by its largest singular value.

    The buffers NAME_u and NAME_v hold the singular vectors, which power iterations estimate.
    """

    def __init__(self, name: str, n_power_iterations: int, eps: float, dim: int) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got {n_power_iterations}"
            )
        self.name, self.eps, self.dim = name, eps, dim
        self.n_power_iterations = n_power_iterations

    def as_matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)

    def install(self, module: Module) -> None:
        weight = getattr(module, self.name)
        like = {"dtype": weight.dtype, "device": weight.device}
        sizes = self.as_matrix(weight.detach()).shape
        vectors = [normalized(ops.empty(n, **like).normal_(0, 1), self.eps) for n in sizes]
        delattr(module, self.name)
        module.register_parameter(self.name + "_orig", weight)
        setattr(module, self.name, weight.detach())
        module.register_buffer(self.name + "_u", vectors[0])
        module.register_buffer(self.name + "_v", vectors[1])

    def uninstall(self, module: Module) -> None:
        weight = self.compute_weight(module, do_power_iteration=False)
        for end in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight))

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = self.as_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalized(matrix.t().mv(u), self.eps))
                    u.copy_(normalized(matrix.mv(v), self.eps))
            u, v = u.clone(), v.clone()  # later iterations change the buffers
        return weight / ops.dot(u, matrix.mv(v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replaces a parameter by NAME_g, its norms, and NAME_v, its directions: Salimans and Kingma,
    2016. parametrizations.weight_norm is the newer form.

    dim: the dimension whose slices each have a norm; None: one norm for all elements.
    """
    add_hook(module, WeightNorm(name, dim), "weight_norm")
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undoes weight_norm. The current weight becomes the parameter."""
    remove_hook(module, WeightNorm, name, "weight_norm")
    return module


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divides a parameter by its largest singular value before each forward: Miyato et al., 2018.
    parametrizations.spectral_norm is the newer form.

    n_power_iterations: number of iterations per forward in training.
    eps: lower bound of the norms in divisions.
    dim: dimension of the outputs; None: 1 for transposed convolutions, else 0.
    """
    if dim is None:
        dim = output_dimension(module)
    hook = SpectralNorm(name, n_power_iterations, eps, dim)
    add_hook(module, hook, "spectral_norm")
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undoes spectral_norm. The current weight becomes the parameter."""
    remove_hook(module, SpectralNorm, name, "spectral_norm")
    return module
