"""Loads libtt; base class of handles; a ctx per thread; exceptions for failed calls."""
from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
from ctypes import POINTER, byref, c_int32, c_int64, c_void_p, cast
from struct import Struct
from typing import Any, Callable, Generator, NoReturn, TypeVar

from . import errors
from ._abi import RESULTS

TYPE_CHECKING = False

T = TypeVar("T", bound="Handle")

VERSION, NEEDED = "0.1.0", "0.1"
NAME = {"win32": "libtt.dll", "darwin": "libtt.dylib"}.get(sys.platform, "libtt.so")
BUFFER_TOO_SMALL, CALLBACK_FAILED = 11, 15  # tt_status
HERE = os.path.dirname(os.path.realpath(__file__))
TREE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


class Functions:
    """The functions of libtt. They have result types but no argument types, since ctypes would
    spend 200 ns a call on conversions: callers pass ctypes objects of the right types.
    """

    _name: str

    def __getattr__(self, name: str) -> Any:
        try:
            function = super().__getattr__(name)  # type: ignore[misc]
        except AttributeError:
            if not name.startswith("tt_"):
                raise
            raise ImportError(
                f"tt: {self._name} has no {name}: its version is not this package's, {VERSION}"
            ) from None
        function.restype = RESULTS.get(name, c_int32)
        return function


class Library(Functions, ctypes.CDLL):
    """libtt. A call releases the interpreter lock."""


class QuickLibrary(Functions, ctypes.PyDLL):
    """libtt. A call keeps the interpreter lock: for functions that neither wait nor compute."""


def candidates() -> list[tuple[str, str]]:
    """Returns (what, path) of each candidate for the library, in search order."""
    named = os.environ.get("TT_LIBRARY")
    if named:
        return [("TT_LIBRARY", named)]
    return [
        ("beside the package", os.path.join(HERE, NAME)),
        ("the source tree's build", os.path.join(TREE, "build", NAME)),
        ("the system's loader", NAME + ".0"),
        ("the system's loader", NAME),
    ]


def open_library() -> tuple[Library, str]:
    """Returns the first library of this version and its path. Raises ImportError if there is
    none."""
    tried = "Searched:"
    for what, path in candidates():
        try:
            if os.sep in path and not os.path.exists(path):
                raise OSError("not there")
            library = Library(path)
        except OSError as e:
            tried += f"\n  {path} ({what}): {e}"
            continue
        version = library.tt_version().decode()
        if version.rpartition(".")[0] != NEEDED:
            raise ImportError(
                f"tt: {path} is version {version}; this package is {VERSION} and needs {NEEDED}.x. "
                f"{tried}\n  {path} ({what}): found"
            )
        return library, path
    raise ImportError(f"tt {VERSION}: libtt was not found; set TT_LIBRARY to its path. {tried}")


lib, path = open_library()
quick = QuickLibrary(path)


class Handle(c_void_p):
    """Owns a reference to an object of libtt. ctypes passes it as the pointer."""

    __slots__ = ()
    if TYPE_CHECKING:
        _address: int | None
    else:
        _address = c_void_p.value
        value = property(doc="Hidden: nobody may change the pointer.")

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle or copy {type(self).__name__}: it is an object of libtt")


class Opaque(ctypes.Structure):
    """An object of libtt, whose content only C knows."""


unpacked_address = Struct("P").unpack  # of a pointer of ctypes: (address,)
packed_address = Struct("P").pack


def finalizer(release: Any) -> Any:
    """Returns a C function for use as a class's __del__.

    Python may run a signal handler in a finalizer written in Python, and would lose its exception,
    such as KeyboardInterrupt.
    """
    method = ctypes.pythonapi.PyInstanceMethod_New
    method.restype, method.argtypes = ctypes.py_object, [ctypes.py_object]
    return method(release)


# ---- Python objects that C refers to ----

kept: dict[int, Any] = {}  # key, which is C's `user` -> object
keys = itertools.count(1)


def keep(x: Any) -> int:
    """Keeps x until C calls drop. Returns its key, the C argument `user`."""
    key = next(keys)
    kept[key] = x
    return key


def for_good(callback: Any) -> Any:
    """Returns a C callback that is never freed: objects may outlive the Python modules."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


drop = for_good(ctypes.CFUNCTYPE(None, c_void_p)(kept.pop))


# ---- errors ----


class Status(int):
    """A tt_status. str() is its name."""

    __slots__ = ()

    def __str__(self) -> str:
        return quick.tt_status_name(c_int32(self)).decode()


def exception_of(address: int) -> errors.TtError:
    """Returns the exception for the tt_error at address."""
    from ._structs import struct

    record = cast(address, POINTER(struct("tt_error"))).contents
    texts = (record.op, record.arg, record.message)
    op, arg, message = ((text or b"").decode("utf-8", "replace") for text in texts)
    if op and not message.startswith(op + ":"):
        message = f"{op}: {message}"
    if message.endswith("there is no such dtype"):
        from ._absent import with_name

        message = with_name(message)
    e: Any = errors.CLASSES.get(record.code, errors.TtError)(message)
    e.code, e.op, e.arg, e.arg_index = Status(record.code), op, arg, record.arg_index
    shapes = [tuple(record.shape[i][: min(n, 8)]) for i, n in enumerate(record.ndim) if n >= 0]
    e.shapes = tuple(shapes)
    if record.cause:
        e.__cause__ = exception_of(record.cause)
    return e


def fail() -> NoReturn:
    """Raises the error of this thread's last call, or the exception of a Python callback in it."""
    raised, local.raised = local.raised, None
    if raised is not None:
        try:
            raise raised
        finally:
            raised = None  # this frame and the exception's traceback would keep each other alive
    record = quick.tt_ctx_error(local.ctx)
    if not record:
        raise errors.TtError("a call failed without an error record")
    raise exception_of(record)


def call(name: str, *args: Any) -> None:
    """Calls a C function that returns a tt_status, and raises its error.

    Generated operators do the same inline, which is faster.
    """
    if getattr(lib, name)(local.ctx, *args):
        fail()


def result(cls: type[T], name: str, *args: Any) -> T:
    """Calls a C function whose last argument receives an object. Returns the object; None for
    NULL."""
    instance = cls.__new__(cls)
    call(name, *args, byref(instance))
    return instance if instance._address else None  # type: ignore[return-value]


def filled(kind: Any, name: str, *args: Any, cap: int = 64) -> Any:
    """Calls a C function that fills an array: its last parameters are array, capacity and count.

    Returns a list of the items, bytes for c_char.
    """
    n = c_int64()
    while True:
        items = (kind * cap)()
        status = getattr(lib, name)(local.ctx, *args, items, c_int64(cap), byref(n))
        if not status:
            return items[: n.value]
        if status != BUFFER_TOO_SMALL or n.value < cap:
            fail()
        cap = n.value + 1


# ---- one runtime, one ctx per thread ----


class Ctx(Handle):
    """Owns a tt_ctx."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_ctx_release)


runtime = c_void_p()
if lib.tt_runtime_new(None, byref(runtime)):
    raise errors.TtError("tt_runtime_new failed")


def watched() -> Generator[int, Any, None]:
    """Yields the status of C's poll: CALLBACK_FAILED once a signal handler has raised.

    Python runs signal handlers when it resumes the generator, inside of its `try`. A function could
    be interrupted before its `try`.
    """
    status = 0
    while True:
        try:
            while True:
                yield status
                status = 0
        except BaseException as e:
            local.raised, status = e, CALLBACK_FAILED


watch = watched()
next(watch)
poll = for_good(ctypes.CFUNCTYPE(c_int32, c_void_p)(watch.send))


# What set_default_dtype and set_printoptions have set, for the contexts of further threads:
# function of C -> its arguments
settings: dict[str, tuple[Any, ...]] = {}


class Local(threading.local):
    """The state of a thread.

    ctx: its tt_ctx, in the form that is fastest for ctypes.
    raised: the exception of a Python callback of the running call, or None.
    device: the default device; None: the CPU. devices: the former ones, within `with device(…):`.
    cuda_device: the index of the current CUDA device.
    """

    raised: BaseException | None
    device: Any
    devices: list[Any]

    def __init__(self) -> None:
        self.owner = Ctx()
        if lib.tt_ctx_new(runtime, byref(self.owner)):
            raise errors.TtError("tt_ctx_new failed")
        self.ctx = c_void_p.from_param(self.owner._address)
        self.raised = None
        self.device, self.devices = None, []
        self.cuda_device = 0
        for name, values in settings.items():
            getattr(lib, name)(self.ctx, *values)
        if threading.current_thread() is threading.main_thread():  # which runs signal handlers
            lib.tt_ctx_set_poll(self.ctx, poll, None, None)


local = Local()
