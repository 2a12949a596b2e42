"""Finds, loads and checks libtt; the ctx of each thread; errors of failed calls."""
import ctypes
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_void_p
from pathlib import Path

from . import errors

VERSION = "0.1.0"
NAME = "libtt.so"
HERE = Path(__file__).resolve().parent


def candidates():
    """(why, path) of every place that may hold the library, in order."""
    named = os.environ.get("TT_LIBRARY")
    if named:
        return [("TT_LIBRARY", named)]
    return [("beside the package", str(HERE / NAME)), ("the source tree's build", str(HERE.parents[2] / "build" / NAME)),
            ("the system's loader", NAME + ".0"), ("the system's loader", NAME)]


class Library(ctypes.CDLL):
    """Calls release the interpreter's lock."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if not name.startswith("tt_"):
                raise
            raise ImportError(f"tt: {self._name} has no function {name}: it is another version than this package, {VERSION}") from None


class QuickLibrary(Library):
    """Calls keep it: for those that neither wait nor compute."""
    _func_flags_ = ctypes.PyDLL._func_flags_


def open_library():
    tried = []
    for why, path in candidates():
        if os.sep in path and not os.path.exists(path):
            tried.append(f"{path} ({why}): not there")
            continue
        try:
            return Library(path), path
        except OSError as e:
            tried.append(f"{path} ({why}): {e}")
    raise ImportError("tt: libtt was not found; set TT_LIBRARY to its path. Tried:\n  " + "\n  ".join(tried))


def check_version(library, path):
    library.tt_version.restype = c_char_p
    found = library.tt_version().decode()
    if found.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"tt: {path} is version {found}, this package needs {'.'.join(VERSION.split('.')[:2])}.x")


lib, path = open_library()
check_version(lib, path)
quick = QuickLibrary(path)

# Prototypes. Operators have none on purpose: generated code passes ctypes objects of the right types, and a prototype
# would convert each of them once more (200 ns a call).
FACTS = {
    "tt_tensor_dtype": c_int32, "tt_tensor_device_type": c_int32, "tt_tensor_device_index": c_int32, "tt_tensor_ndim": c_int64,
    "tt_tensor_numel": c_int64, "tt_tensor_shape": POINTER(c_int64), "tt_tensor_strides": POINTER(c_int64), "tt_tensor_offset": c_int64,
    "tt_tensor_data": c_void_p, "tt_tensor_storage_bytes": c_int64, "tt_tensor_version": c_int32, "tt_tensor_is_contiguous": c_int32,
    "tt_tensor_is_writable": c_int32,
    "tt_tensor_is_leaf": c_int32, "tt_tensor_requires_grad": c_int32, "tt_tensor_release": None, "tt_tensor_retain": None,
    "tt_ctx_release": None, "tt_ctx_error": c_void_p, "tt_generator_release": None, "tt_node_release": None, "tt_node_name": c_char_p,
    "tt_node_num_inputs": c_int64, "tt_grad_enabled": c_int32, "tt_num_threads": c_int32, "tt_set_grad_enabled": c_int32,
}
for _name, _result in FACTS.items():
    getattr(quick, _name).restype = _result


def build_info():
    """One line: version, compiler, ISAs, BLAS, SLEEF."""
    quick.tt_build_info.restype = c_char_p
    return quick.tt_build_info().decode()


class Handle:
    """Owns one reference of a tt object. `_as_parameter_` is the c_void_p that ctypes passes."""
    __slots__ = ("_as_parameter_", "__weakref__")


def released_by(cls, release):
    """Makes the C function `release` the finalizer of cls: called with the object itself, without a Python frame."""
    method = ctypes.pythonapi.PyInstanceMethod_New
    method.restype, method.argtypes = ctypes.py_object, [ctypes.py_object]
    cls.__del__ = method(release)
    cls._h = cls._as_parameter_  # the same slot by a short name
    return cls


def dropper(table):
    """A C callback that takes key out of table. It outlives the interpreter's modules, for what is released while they go."""
    take = table.pop

    @ctypes.CFUNCTYPE(None, c_void_p)
    def drop(key):
        take(key, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(drop))
    return drop


# ---- errors ----

class ErrorRecord(ctypes.Structure):
    """tt_error"""


ErrorRecord._fields_ = [("code", c_int32), ("arg_index", c_int32), ("op", c_char_p), ("arg", c_char_p), ("message", c_char_p),
                        ("ndim", c_int32 * 2), ("shape", (c_int64 * 8) * 2), ("dtype", c_int32 * 2), ("cause", POINTER(ErrorRecord))]


def text(s):
    return s.decode("utf-8", "replace") if s else ""


def exception_of(record):
    """The exception that says what a tt_error says."""
    op, message = text(record.op), text(record.message)
    e = errors.CLASSES.get(record.code, errors.TtError)(f"{op}: {message}" if op and not message.startswith(op + ":") else message)
    e.code, e.op, e.arg, e.arg_index = record.code, op, text(record.arg), record.arg_index
    e.shapes = tuple(tuple(record.shape[i][:min(record.ndim[i], 8)]) for i in (0, 1) if record.ndim[i] >= 0)
    if record.cause:
        e.__cause__ = exception_of(record.cause.contents)
    return e


def fail():
    """Raises the error of this thread's last call; what a Python callback raised comes out as itself."""
    raised, local.raised = local.raised, None
    if raised is not None:
        raise raised
    record = quick.tt_ctx_error(local.ctx)
    if not record:
        raise errors.TtError("a call failed without an error record")
    raise exception_of(ErrorRecord.from_address(record))


# ---- one ctx per thread, one runtime ----

class Ctx(Handle):
    __slots__ = ()


released_by(Ctx, quick.tt_ctx_release)

runtime = c_void_p()
if lib.tt_runtime_new(None, byref(runtime)):
    raise errors.TtError("tt_runtime_new failed")


class Local(threading.local):
    """ctx: this thread's, as ctypes passes it. raised: the exception that a callback of the running call has raised."""

    def __init__(self):
        self.owner = Ctx()
        self.owner._h = c_void_p()
        if lib.tt_ctx_new(runtime, byref(self.owner._h)):
            raise errors.TtError("tt_ctx_new failed")
        self.ctx = c_void_p.from_param(self.owner._h.value)
        self.raised = None


local = Local()
