"""The names of torch.overrides: tt has no __torch_function__."""
from __future__ import annotations

from ._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

__all__ = ["handle_torch_function", "has_torch_function", "is_tensor_like", "wrap_torch_function"]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Returns False: operators call no __torch_function__ of their arguments."""
    return False


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Returns public_api(*args, **kwargs)."""
    return public_api(*args, **kwargs)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a decorator that returns the function unchanged."""
    return lambda function: function


def is_tensor_like(inp: Any) -> bool:
    """Returns whether inp is a tensor, or an object with __torch_function__."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def __dir__() -> list[str]:
    return __all__
