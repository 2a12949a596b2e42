"""Values that another thread provides later, with the API of torch.futures."""
from __future__ import annotations

import concurrent.futures
import threading
from typing import Any, Callable

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value or an exception that is set once. Any thread may set it or wait for it."""

    def __init__(self, *, devices: Any = None) -> None:
        self._future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def __class_getitem__(cls, kind: Any) -> Any:
        """Returns the class itself: Future[T] is a hint."""
        return cls

    def done(self) -> bool:
        """Returns whether the value or the exception has been set."""
        return self._future.done()

    def wait(self) -> Any:
        """Waits for the value and returns it, or raises the exception."""
        return self._future.result()

    def value(self) -> Any:
        """Returns the value, or raises the exception. It must have been set."""
        if not self.done():
            raise RuntimeError("Future.value: the value has not been set: call wait()")
        return self._future.result()

    def set_result(self, result: Any) -> None:
        """Sets the value. Raises RuntimeError if it is set already."""
        try:
            self._future.set_result(result)
        except concurrent.futures.InvalidStateError:
            raise RuntimeError("Future.set_result: the future is complete already") from None

    def set_exception(self, result: BaseException) -> None:
        """Sets the exception that wait() raises."""
        if not isinstance(result, BaseException):
            raise TypeError(f"set_exception(): {result!r} is no exception")
        try:
            self._future.set_exception(result)
        except concurrent.futures.InvalidStateError:
            raise RuntimeError("Future.set_exception: the future is complete already") from None

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Calls callback(self) when self is complete, or now if it already is."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Returns a future of the result of callback(self)."""
        following = Future()

        def follow(done: Future) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(follow)
        return following


def wait_all(futures: list[Future]) -> list[Any]:
    """Waits for all futures and returns their values. Raises the first exception among them."""
    return [future.wait() for future in futures]


def collect_all(futures: list[Future]) -> Future:
    """Returns a future of the list of futures. It is complete when all of them are."""
    collected = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def one_done(_: Future) -> None:
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(one_done)
    if not futures:
        collected.set_result(futures)
    return collected


def __dir__() -> list[str]:
    return __all__
