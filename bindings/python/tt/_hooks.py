"""Python callbacks of C: exceptions, borrowed and returned tensors, registration."""
from __future__ import annotations

from contextlib import ExitStack
from ctypes import c_void_p
from typing import Any, Callable

from ._class_name import class_name
from ._lib import CALLBACK_FAILED, drop, keep, local, quick
from ._tensor import Tensor, borrow


def guarded(body: Callable[[], Any]) -> int:
    """Runs the body of a callback. Returns its tt_status.

    local.raised keeps an exception until the outer call has failed, which then raises it. C polls
    before each callback, so signals are handled there (see _lib.watched). ctypes reports an
    exception that a signal handler raises between that poll and this `try`.
    """
    try:
        body()
    except BaseException as e:
        local.raised = e
        return CALLBACK_FAILED
    return 0


def optional_tensors(addresses: Any, n: int) -> tuple[Tensor | None, ...]:
    """Returns tensors for n handles that C owns; None for NULL."""
    return tuple(borrow(addresses[i]) if addresses[i] else None for i in range(n))


def give(result: Any, outs: Any, n: int, what: str) -> None:
    """Writes the result of a callback, one tensor or n tensors, into an array, which owns them.

    None leaves its entry unchanged. what: the callback's name in messages.
    """
    if result is None:
        return
    result = result if isinstance(result, (tuple, list)) else (result,)
    if len(result) != n:
        raise ValueError(f"{what} must return {n} tensors, not {len(result)}")
    for i, t in enumerate(result):
        if t is None:
            continue
        if not isinstance(t, Tensor):
            raise TypeError(f"{what} must return a Tensor or None, not {class_name(t)}")
        quick.tt_tensor_retain(t)
        outs[i] = t._address


def give_list(tensors: Any, outs: Any, cap: int, n: Any, what: str) -> None:
    """Writes the results of a callback into an array, which owns them, and their number into n."""
    if len(tensors) > cap:
        raise ValueError(f"{what} must return at most {cap} tensors, not {len(tensors)}")
    n[0] = 0
    give(tensors, outs, len(tensors), what)
    n[0] = len(tensors)


def registered(callback: Any, fn: Any) -> tuple[Any, c_void_p, Any]:
    """Returns the three C arguments of a Python callback: callback, user and drop."""
    if not callable(fn):
        raise TypeError(f"a hook must be callable, not {type(fn).__name__}")
    return callback, c_void_p(keep(fn)), drop


class HookHandle(ExitStack):
    """The handle of a registered hook. remove() unregisters it, as does the end of a with block."""

    def __init__(self, end: Callable[[], Any]) -> None:
        super().__init__()
        self.callback(end)

    def remove(self) -> None:
        self.close()
