"""Decorators for functions that others call."""
from __future__ import annotations

from functools import wraps
from typing import Any, Callable

__all__ = ["async_execution"]


def async_execution(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function that returns a Future: a remote call of it returns the future's value."""

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    call._returns_future = True  # type: ignore[attr-defined]
    return call
