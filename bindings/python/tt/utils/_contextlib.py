"""Names of torch.utils._contextlib: context managers that decorate functions."""
from __future__ import annotations

from functools import wraps
from typing import Any, Callable


class _DecoratorContextManager:
    """A context manager that also decorates functions, each call of which enters a copy of it."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(orig_func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return inside

    def __enter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __enter__")

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __exit__")

    def clone(self) -> Any:
        """Returns a copy for one call. A subclass whose constructor takes arguments defines it."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One whose class itself decorates: @Manager and @Manager() do the same."""

    def __new__(cls, orig_func: Any = None) -> Any:
        manager = super().__new__(cls)
        return manager if orig_func is None else manager(orig_func)
