"""What C calls in Python: functions that are kept for it, and what the generated callbacks (_callbacks.py) share."""
import sys
from contextlib import ExitStack
from ctypes import c_void_p

from ._kinds import kind_name
from ._lib import CALLBACK_FAILED, drop, keep, local, quick
from ._tensor import Tensor, borrow


def guarded(body):
    """Runs body(); an exception waits in local.raised until the call that led here fails."""
    try:
        body()
    except BaseException as e:
        local.raised = e
        return CALLBACK_FAILED
    return 0


def escaped(unraisable, before=sys.unraisablehook):
    """What the handler of a signal raises at the first instruction of a callback, where no try can stand: it waits for the poll."""
    trace = unraisable.exc_traceback
    if trace and trace.tb_frame.f_globals.get("__name__") == f"{__package__}._callbacks":
        local.raised = unraisable.exc_value
    else:
        before(unraisable)


sys.unraisablehook = escaped


def optional_tensors(addresses, n):
    """A tuple of the tensors whose handles C lends; None for NULL."""
    return tuple(borrow(addresses[i]) if addresses[i] else None for i in range(n))


def give(found, outs, n, what):
    """Writes owned handles into an array of C's: of one tensor or of n; None leaves its place as it is."""
    if found is None:
        return
    found = found if isinstance(found, (tuple, list)) else (found,)
    if len(found) != n:
        raise ValueError(f"{what} must return {n} tensors, not {len(found)}")
    for i, t in enumerate(found):
        if t is None:
            continue
        if not isinstance(t, Tensor):
            raise TypeError(f"{what} must return a Tensor or None, not {kind_name(t)}")
        quick.tt_tensor_retain(t)
        outs[i] = t._address


def registered(callback, fn):
    """C's three arguments for a Python function: callback, user and drop."""
    if not callable(fn):
        raise TypeError(f"a hook must be callable, not {type(fn).__name__}")
    return callback, c_void_p(keep(fn)), drop


class HookHandle(ExitStack):
    """Of a registered hook: remove() ends it."""

    def __init__(self, end):
        super().__init__()
        self.callback(end)

    def remove(self):
        self.close()
