"""torch.overrides: subclasses of Tensor and other classes that intercept functions by their
__torch_function__, and modes that intercept all of them."""
from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any, Callable, Iterable

from . import _interception
from ._hints import Self
from ._interception import DisableTorchFunction as DisableTorchFunction
from ._interception import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ._interception import disabled_torch_function as _disabled_torch_function_impl
from ._interception import candidates, handle, intercepts, names, of_tensor, overloaded, state
from ._tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Returns whether an argument or a mode intercepts a function called with these arguments."""
    if state.modes and not state.off:
        return True
    return not state.subclass_off and any(intercepts(type(x)) for x in candidates(relevant_args))


def has_torch_function_unary(x: Any) -> bool:
    """Returns has_torch_function((x,))."""
    return has_torch_function((x,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Returns has_torch_function(args)."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Returns what the innermost mode, or the __torch_function__ of the arguments, returns for
    public_api(*args, **kwargs).

    Arguments are asked from left to right, subclasses before their bases. Raises TypeError if all
    return NotImplemented.
    """
    return handle(public_api, overloaded(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Returns a decorator that makes a function overridable.

    dispatcher: takes the arguments of the function and returns those that may intercept it.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def overridable(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(overridable, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return overridable

    return decorate


class TorchFunctionMode:
    """A context manager whose __torch_function__ gets all calls of public functions in the block.

    Within __torch_function__ the mode is off, so that it can call func.
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__qualname__} has no __torch_function__")

    def __enter__(self) -> Self:
        _interception.begin()
        state.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        state.modes.pop()
        _interception.end()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """Returns cls(*args, **kwargs): its former name."""
        warnings.warn("Mode.push() is no longer necessary: write Mode()", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls each function."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _len_torch_function_stack() -> int:
    return len(state.modes)


def _get_current_function_mode() -> TorchFunctionMode | None:
    return state.modes[-1] if state.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return list(state.modes)


def _is_torch_function_mode_enabled() -> bool:
    return bool(state.modes) and not state.off


def is_tensor_like(inp: Any) -> bool:
    """Returns whether inp is a tensor, or an object with __torch_function__."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Returns whether func is a method of Tensor, or the access to one of its attributes."""
    _interception.ensure_built()
    return func in of_tensor or getattr(func, "__name__", "") == "__get__"


def resolve_name(f: Any) -> str | None:
    """Returns the qualified name of a function that can be overridden, or None."""
    if isinstance(f, str):
        return f
    _interception.ensure_built()
    return names.get(f)


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Returns the functions whose results Tensor.__torch_function__ returns as they are."""
    return {Tensor.grad.__get__}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Returns the functions that __torch_function__ gets, by the namespace that has them."""
    from importlib import import_module

    _interception.ensure_built()
    found: dict[Any, list[Callable[..., Any]]] = {}
    for function, name in names.items():
        is_method = name.startswith("tt.Tensor.")
        if is_method:
            found.setdefault(Tensor, []).append(function)
        else:
            module = import_module(name.rpartition(".")[0])
            found.setdefault(module, []).append(function)
    return found


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Returns each function that can be overridden with a function of its arguments that returns
    -1."""
    _interception.ensure_built()
    return {function: _minus_one(function) for function in names}


def _minus_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function with the same signature that returns -1."""

    def dummy(*args: Any, **kwargs: Any) -> int:
        return -1

    try:
        dummy.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    except ValueError:  # of an attribute
        pass
    return dummy


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Returns functions of tt and Tensor that __torch_function__ never gets."""
    import tt

    found = {getattr(tt, name, None) for name in _interception.IGNORED_FUNCTIONS}
    found |= {getattr(Tensor, name, None) for name in _interception.IGNORED_ATTRIBUTES}
    return {function for function in found if callable(function)}


def __dir__() -> list[str]:
    return __all__
