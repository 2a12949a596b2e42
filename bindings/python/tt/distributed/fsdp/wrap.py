"""Policies for auto_wrap_policy, with the names of torch.distributed.fsdp.wrap."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator

from ...nn.module import Module

__all__ = [
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]
wrapping: list[dict[str, Any]] = []  # the arguments of enable_wrap around this call


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Makes wrap() call wrapper_cls with these arguments inside a block."""
    wrapping.append({"wrapper_cls": wrapper_cls, **wrapper_kwargs})
    try:
        yield
    finally:
        wrapping.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Any:
    """Returns the module, wrapped inside a block of enable_wrap."""
    if not wrapping:
        return module
    given = {**wrapping[-1], **wrap_overrides}
    return given.pop("wrapper_cls")(module, **given)


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Makes each submodule a unit."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Makes the submodules for which lambda_fn is true units."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: Iterable[type[Module]],
) -> bool:
    """Makes the submodules of these classes units."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 10**8,
    **kwargs: Any,
) -> bool:
    """Makes submodules of at least min_num_params parameters units."""
    return nonwrapped_numel >= min_num_params


class ModuleWrapPolicy:
    """Makes the submodules of these classes units."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._module_classes)


def _or_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]
) -> bool:
    """Makes the submodules that one of the policies chooses units."""
    return any(policy(module, recurse, nonwrapped_numel) for policy in policies)


def __dir__() -> list[str]:
    return __all__
