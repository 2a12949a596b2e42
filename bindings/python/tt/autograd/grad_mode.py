"""Grad modes: whether operators of this thread record gradients.

Another thread records, even if it is started in a no_grad block.
"""
from __future__ import annotations

from contextlib import ContextDecorator, nullcontext
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, Callable, Generator, TypeVar, overload

from .._handles import is_grad_enabled, switch_grad

F = TypeVar("F", bound=Callable[..., Any])
Switch = Callable[[bool], int]

__all__ = [
    "Mode",
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class Mode(ContextDecorator):
    """A mode of this thread within a block or, as a decorator, a function. It may be nested."""

    def __init__(self, on: bool, switch: Switch = switch_grad) -> None:
        self.on, self.switch = bool(on), switch
        self.previous: list[Any] = []

    def __enter__(self) -> None:
        self.previous.append(self.switch(self.on))

    def __exit__(self, *_: object) -> None:
        self.switch(self.previous.pop())

    def _recreate_cm(self) -> Mode:
        """Returns the context manager for one call of a decorated function."""
        return Mode(self.on, self.switch)

    def clone(self) -> Mode:
        """Returns a context manager of the same mode."""
        return self._recreate_cm()

    def __call__(self, function: F) -> F:
        if not isgeneratorfunction(function):
            return super().__call__(function)

        @wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return (yield from self._resumed(function(*args, **kwargs)))

        return generator  # type: ignore[return-value]

    def _resumed(self, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Runs the generator's body in the mode, and the code between its values outside."""
        resume: Callable[[Any], Any] = generator.send
        given: Any = None
        try:
            while True:
                with self._recreate_cm():
                    value = resume(given)
                try:
                    resume, given = generator.send, (yield value)
                except GeneratorExit:
                    with self._recreate_cm():
                        generator.close()
                    raise
                except BaseException as e:
                    resume, given = generator.throw, e
        except StopIteration as end:
            return end.value


@overload
def no_grad(function: None = None) -> Mode:
    ...


@overload
def no_grad(function: F) -> F:
    ...


def no_grad(function: Any = None) -> Any:
    """Operators record no gradients in the block, or in the decorated function.

    The mode is per thread: other threads, even those started in the block, record as before.
    """
    return Mode(False) if function is None else Mode(False)(function)


@overload
def enable_grad(function: None = None) -> Mode:
    ...


@overload
def enable_grad(function: F) -> F:
    ...


def enable_grad(function: Any = None) -> Any:
    """Operators record gradients in the block, or in the decorated function, also within
    no_grad."""
    return Mode(True) if function is None else Mode(True)(function)


@overload
def inference_mode(mode: bool = True) -> Mode:
    ...


@overload
def inference_mode(mode: F) -> F:
    ...


def inference_mode(mode: Any = True) -> Any:
    """Equals no_grad(): tensors created in the block are ordinary. inference_mode(False) does
    nothing."""
    return no_grad(mode) if callable(mode) else Mode(not mode and is_grad_enabled())


class set_grad_enabled(Mode):
    """Switches recording on or off immediately; as a context manager, until the end of the
    block."""

    def __init__(self, mode: bool, switch: Switch = switch_grad) -> None:
        super().__init__(mode, switch)
        super().__enter__()

    def __enter__(self) -> None:
        self.switch(self.on)

    def __call__(self, function: F) -> F:
        """As a decorator, switches within the function only."""
        self.__exit__()
        return super().__call__(function)

    def __repr__(self) -> str:
        return f"tt.autograd.grad_mode.set_grad_enabled(mode={self.on})"


def set_multithreading_enabled(mode: bool) -> nullcontext[None]:
    """Does nothing, at once or in a block: a backward runs in the thread that calls it."""
    return nullcontext()
