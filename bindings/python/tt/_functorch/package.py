"""The package functorch, which as_torch() makes importable: tt.func, and modules as functions of
their parameters."""
from __future__ import annotations

from copy import deepcopy
from typing import Any, Sequence

from ..func import functional_call, stack_module_state
from ..func import functionalize as functionalize
from ..func import grad as grad
from ..func import grad_and_value as grad_and_value
from ..func import hessian as hessian
from ..func import jacfwd as jacfwd
from ..func import jacrev as jacrev
from ..func import jvp as jvp
from ..func import vjp as vjp
from ..func import vmap as vmap
from ..nn.module import Module

__all__ = ["combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian"]
__all__ += ["jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp"]
__all__ += ["vmap"]


class FunctionalModuleWithBuffers(Module):
    """A module as a function of (params, buffers, *args)."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.stateless_model = model
        self.param_names = tuple(name for name, _ in model.named_parameters())
        self.buffer_names = tuple(name for name, _ in model.named_buffers())

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        names = self.param_names + self.buffer_names
        state = dict(zip(names, (*params, *buffers)))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module as a function of (params, *args)."""

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        return super().forward(params, (), *args, **kwargs)


def parameters_of(model: Module, disable_autograd_tracking: bool) -> tuple[Any, ...]:
    """Returns the parameters, detached if they are not to be tracked."""
    params = tuple(model.parameters())
    return tuple(p.detach() for p in params) if disable_autograd_tracking else params


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """Returns a function of (params, *args), and copies of the parameters. Raises RuntimeError for
    a model with buffers. disable_autograd_tracking: the copies require no gradients."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional: the model has buffers: use make_functional_with_buffers"
        )
    copied = deepcopy(model)
    return FunctionalModule(copied), parameters_of(copied, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Returns a function of (params, buffers, *args), and copies of the parameters and buffers."""
    copied = deepcopy(model)
    function = FunctionalModuleWithBuffers(copied)
    return function, parameters_of(copied, disable_autograd_tracking), tuple(copied.buffers())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Returns a function of (params, buffers, *args) for vmap, and the parameters and buffers of
    the models, each stacked along a new first dimension."""
    params, buffers = stack_module_state(list(models))
    function = FunctionalModuleWithBuffers(deepcopy(models[0]))
    return function, tuple(params.values()), tuple(buffers.values())
