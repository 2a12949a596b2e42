"""Ctrl-C in a long call: the call is cancelled between two kernels, so that KeyboardInterrupt comes out of it soon.

While C computes, Python's own handler cannot run. The first long call of the main thread starts a thread that reads of signals what
signal.set_wakeup_fd tells, and sets the token of the main thread's ctx. Where somebody else has that descriptor, or a handler of SIGINT of
his own, nothing is cancelled.
"""
import os
import select
import signal
import threading

from ._lib import Handle, call, lib, quick, released_by, result


class Cancel(Handle):
    __slots__ = ()


released_by(Cancel, quick.tt_cancel_release)


class Watch:
    """Of the main thread. requested: the token has been set, or is about to be."""
    process = token = reader = None
    running = requested = False
    lock = threading.Lock()


def drained():
    """The signals that have come since the last time."""
    try:
        return os.read(Watch.reader, 64) if Watch.reader is not None else b""
    except BlockingIOError:
        return b""


def watch():
    while True:
        select.select([Watch.reader], [], [])
        with Watch.lock:
            if signal.SIGINT in drained() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                before, Watch.requested = Watch.requested, True  # first of all: the main thread reads it without the lock
                if Watch.running:
                    lib.tt_cancel_request(Watch.token)
                else:
                    Watch.requested = before


def renew():
    """A token that is not set."""
    with Watch.lock:
        Watch.token, Watch.requested = result(Cancel, "tt_cancel_new"), False
        call("tt_ctx_set_cancel", Watch.token)


def start():
    Watch.process = os.getpid()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    other = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if other != -1:
        signal.set_wakeup_fd(other)
        return
    Watch.reader = reader
    renew()
    threading.Thread(target=watch, name="tt-interrupt", daemon=True).start()


def interruptible(name, *args):
    """call(name, *args), which may take long."""
    if threading.get_ident() != threading.main_thread().ident:
        return call(name, *args)
    if Watch.process != os.getpid():
        start()
    elif Watch.requested and not Watch.running:
        renew()
    with Watch.lock:
        drained()  # those from before are Python's affair: the watching thread may not have seen them yet
        before, Watch.running = Watch.running, True
    try:
        call(name, *args)
    finally:
        Watch.running = before
        if Watch.requested and not before:
            renew()
