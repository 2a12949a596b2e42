"""Calls of modules with other parameters and buffers: torch.nn.utils.stateless."""
from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping

    from ..._tensor import Tensor
    from ..module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other tensors in place of parameters and buffers. The module is unchanged
    afterwards.

    parameters_and_buffers: by dotted names; the others are the module's own.
    args, kwargs: arguments of the call; args is a tuple, or the only one.
    tie_weights: replaces a tensor with several names under all of them.
    strict: the names must be exactly those of the module.
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def replaced(
    module: Module, tensors: Mapping[str, Tensor], tie_weights: bool, strict: bool
) -> Iterator[None]:
    own: dict[str, Tensor] = {}
    own.update(module.named_parameters(remove_duplicate=False))
    own.update(module.named_buffers(remove_duplicate=False))
    if strict:
        check_names(tensors, own)
    given = {name: t for name, t in tensors.items() if name in own}
    if tie_weights:
        given = with_ties(given, own)
    before = []
    try:
        for path, t in given.items():
            owner, _, name = path.rpartition(".")
            m = module.get_submodule(owner)
            before.append((m, name, m._swap_tensor(name, t)))
        yield
    finally:
        for m, name, t in reversed(before):
            m._swap_tensor(name, t)


def check_names(tensors: Mapping[str, Tensor], own: Mapping[str, Any]) -> None:
    """Raises RuntimeError unless both have the same names."""
    unexpected = sorted(set(tensors) - set(own))
    missing = sorted(set(own) - set(tensors))
    if unexpected or missing:
        raise RuntimeError(
            f"functional_call: unexpected keys: {', '.join(unexpected) or 'none'}; "
            f"missing keys: {', '.join(missing) or 'none'}"
        )


def with_ties(given: dict[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Adds the other names of the tensors that are replaced."""
    names: dict[int, list[str]] = {}
    for name, t in own.items():
        names.setdefault(id(t), []).append(name)
    everything = dict(given)
    for name, t in given.items():
        for other in names[id(own[name])]:
            if everything.setdefault(other, t) is not t:
                raise ValueError(
                    f"functional_call: {name} and {other} are one tensor, but have two values"
                )
    return everything
