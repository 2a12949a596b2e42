"""Finds, loads and checks libtt; handles; the ctx of each thread; errors of failed calls."""
import ctypes
import itertools
import os
import sys
import threading
from ctypes import POINTER, byref, c_int32, c_int64, c_void_p, cast

from . import errors
from ._abi import RESULTS

VERSION, NEEDED = "0.1.0", "0.1"
NAME, BUFFER_TOO_SMALL, CALLBACK_FAILED = "libtt.so", 11, 15
HERE = os.path.dirname(os.path.realpath(__file__))
TREE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


class Library(ctypes.CDLL):
    """Calls release the interpreter's lock. Functions have no prototypes but their results: callers pass ctypes objects of the right types,
    and a prototype would convert each of them once more (200 ns a call)."""

    def __getattr__(self, name):
        try:
            found = super().__getattr__(name)
        except AttributeError:
            if not name.startswith("tt_"):
                raise
            raise ImportError(
                f"tt: {self._name} has no {name}: it is another version than this package, {VERSION}"
            ) from None
        found.restype = RESULTS.get(name, c_int32)
        return found


class QuickLibrary(Library):
    """Calls keep it: for those that neither wait nor compute."""

    _func_flags_ = ctypes.PyDLL._func_flags_


def candidates():
    """(why, path) of every place that may hold the library, in order."""
    named = os.environ.get("TT_LIBRARY")
    if named:
        return [("TT_LIBRARY", named)]
    return [
        ("beside the package", os.path.join(HERE, NAME)),
        ("the source tree's build", os.path.join(TREE, "build", NAME)),
        ("the system's loader", NAME + ".0"),
        ("the system's loader", NAME),
    ]


def open_library():
    """The first library found, if it is of this version, and its path."""
    tried = "Searched:"
    for why, path in candidates():
        try:
            if os.sep in path and not os.path.exists(path):
                raise OSError("not there")
            library = Library(path)
        except OSError as e:
            tried += f"\n  {path} ({why}): {e}"
            continue
        found = library.tt_version().decode()
        if found.rpartition(".")[0] != NEEDED:
            raise ImportError(
                f"tt: {path} is version {found}; this package is {VERSION} and needs {NEEDED}.x. {tried}\n  {path} ({why}): found"
            )
        return library, path
    raise ImportError(f"tt {VERSION}: libtt was not found; set TT_LIBRARY to its path. {tried}")


lib, path = open_library()
quick = QuickLibrary(path)


new = c_void_p.__new__  # new(Tensor): without a handle yet, for the address of a result


class Handle(c_void_p):
    """Owns one reference of a tt object; ctypes passes it as the pointer."""

    __slots__ = ()
    _address = c_void_p.value
    value = property(doc="Not the pointer, which is nobody's to change.")

    def __reduce__(self):
        raise TypeError(f"cannot pickle or copy {type(self).__name__}: it is an object of libtt")


def released_by(cls, release):
    """Makes the C function `release` the finalizer of cls: called with the object itself, without a Python frame."""
    method = ctypes.pythonapi.PyInstanceMethod_New
    method.restype, method.argtypes = ctypes.py_object, [ctypes.py_object]
    cls.__del__ = method(release)


def without_buffer(cls):
    """ctypes gives the pointer itself as a buffer, which NumPy would take for a tensor's values. Python 3.12 asks __buffer__; before that the
    type's table of buffer functions, which must be its own, is taken away."""
    at = c_void_p.from_address(id(cls) + object.__basicsize__ + 144)  # tp_as_buffer
    if sys.version_info < (3, 12) and id(cls) < (at.value or 0) < id(cls) + type.__basicsize__:
        at.value = None


# ---- Python's objects that C refers to ----

kept = {}  # key -> object
keys = itertools.count(1)


def keep(x):
    """The key of x, for C's `user`; x lives until C calls drop with it."""
    key = next(keys)
    kept[key] = x
    return key


def for_good(callback):
    """A C callback that outlives the interpreter's modules, for what is released while they go."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


drop = for_good(ctypes.CFUNCTYPE(None, c_void_p)(kept.pop))


# ---- errors ----


class Status(int):
    """A tt_status; as text its name."""

    __slots__ = ()

    def __str__(self):
        return quick.tt_status_name(c_int32(self)).decode()


def exception_of(address):
    """The exception that says what the tt_error at address says."""
    from ._layouts import struct

    record = cast(address, POINTER(struct("tt_error"))).contents
    op, arg, message = (
        (s or b"").decode("utf-8", "replace") for s in (record.op, record.arg, record.message)
    )
    e = errors.CLASSES.get(record.code, errors.TtError)(
        f"{op}: {message}" if op and not message.startswith(op + ":") else message
    )
    e.code, e.op, e.arg, e.arg_index = Status(record.code), op, arg, record.arg_index
    e.shapes = tuple(
        tuple(record.shape[i][: min(record.ndim[i], 8)]) for i in (0, 1) if record.ndim[i] >= 0
    )
    if record.cause:
        e.__cause__ = exception_of(record.cause)
    return e


def fail():
    """Raises the error of this thread's last call; what a Python callback raised comes out as itself."""
    raised, local.raised = local.raised, None
    if raised is not None:
        raise raised
    record = quick.tt_ctx_error(local.ctx)
    if not record:
        raise errors.TtError("a call failed without an error record")
    raise exception_of(record)


def call(name, *args):
    """A call that may fail. What `a + b` and the like need goes the shorter way, without this function."""
    if getattr(lib, name)(local.ctx, *args):
        fail()


def result(kind, name, *args):
    """The object that a C function gives as its last argument; None where that is NULL."""
    made = new(kind)
    call(name, *args, byref(made))
    return made if made._address else None


def filled(kind, name, *args, cap=64):
    """The items that a C function writes into its caller's array; its last parameters are array, cap and their number. Of c_char: bytes."""
    n = c_int64()
    while True:
        items = (kind * cap)()
        status = getattr(lib, name)(local.ctx, *args, items, c_int64(cap), byref(n))
        if not status:
            return items[: n.value]
        if status != BUFFER_TOO_SMALL or n.value < cap:
            fail()
        cap = n.value + 1


# ---- one ctx per thread, one runtime ----


class Ctx(Handle):
    __slots__ = ()


released_by(Ctx, quick.tt_ctx_release)

runtime = c_void_p()
if lib.tt_runtime_new(None, byref(runtime)):
    raise errors.TtError("tt_runtime_new failed")


def watched():
    """A poll of C's: Python runs the handlers of signals when it resumes a generator, here inside the try that a function would not have yet."""
    status = 0
    while True:
        try:
            while True:
                yield status
                status = CALLBACK_FAILED if local.raised else 0  # what escaped() has kept
        except BaseException as e:
            local.raised, status = e, CALLBACK_FAILED


watch = watched()
next(watch)
poll = for_good(ctypes.CFUNCTYPE(c_int32, c_void_p)(watch.send))


class Local(threading.local):
    """ctx: this thread's, as ctypes passes it. raised: the exception that a callback of the running call has raised."""

    def __init__(self):
        self.owner = Ctx()
        if lib.tt_ctx_new(runtime, byref(self.owner)):
            raise errors.TtError("tt_ctx_new failed")
        self.ctx = c_void_p.from_param(self.owner._address)
        self.raised = None
        if threading.current_thread() is threading.main_thread():  # where Python's signals are
            lib.tt_ctx_set_poll(self.ctx, poll, None, None)


local = Local()
