"""Struct layouts, constants and functions as Python sees them are C's: against
build/tests/abi_dump, which a C compiler made of the headers."""
import ctypes
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

import tt
from tt import _abi, _lib, _memory, _ops, _structs

ROOT = Path(__file__).resolve().parents[3]
DUMP = Path(os.environ.get("TT_BUILD", ROOT / "build")) / "tests/abi_dump"


def dump():
    """kind -> name -> number"""
    found = {"struct": {}, "field": {}, "constant": {}}
    for line in subprocess.run(
        [DUMP], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        kind, name, number = line.split()
        found[kind][name] = int(number)
    return found


@pytest.mark.skipif(not DUMP.exists(), reason="abi_dump is not built")
def test_structs_and_constants_are_those_of_c():
    c = dump()
    sizes = {name: ctypes.sizeof(_structs.struct(name)) for name in _structs.STRUCTS}
    offsets = {
        f"{name}.{field}": getattr(_structs.struct(name), field).offset
        for name in _structs.STRUCTS
        for field, _ in _structs.struct(name)._fields_
    }
    assert sizes == c["struct"] and offsets == c["field"] and _structs.CONSTANTS == c["constant"]


def test_packed_options_have_the_size_of_their_struct():
    checked = 0
    for path in (ROOT / "bindings/python/tt/_ops").glob("_*.py"):
        for name, form in re.findall(r'^_o_(\w+) = Struct\("(\w+)"\)', path.read_text(), re.M):
            of = (
                name if f"tt_{name}_opts" in _structs.STRUCTS else name.rpartition("_")[0]
            )  # of a form that takes numbers: add_scalar, scatter_value
            assert ctypes.sizeof(_structs.struct(f"tt_{of}_opts")) == struct.calcsize(form), name
            checked += 1
    assert checked > 50


def test_facts_of_tensors_are_read_where_c_writes_them():
    info = _structs.struct("tt_tensor_info")
    assert _memory.AT == info.shape.offset and ctypes.sizeof(_memory.Info) == ctypes.sizeof(info)
    names = [name for name, _ in info._fields_]
    assert names[:4] == ["numel", "data", "dtype", "ndim"] and names[5:8] == [
        "is_contiguous",
        "is_writable",
        "requires_grad",
    ]
    x = tt.ones(3, 5, requires_grad=True)
    raw = _memory.Info()
    _memory.get_info(x._as_parameter_, raw)
    found = (15, x.data_ptr(), tt.float32.code, 2, _memory.CPU, 0, 1, 1, 1)
    assert _memory.unpack_head(raw) == found and _memory.SIZES[2](raw, _memory.AT) == (3, 5)


def test_dtypes_and_errors_have_the_numbers_of_c():
    short = {
        "bool": "BOOL",
        "uint8": "U8",
        "int8": "I8",
        "int16": "I16",
        "int32": "I32",
        "int64": "I64",
        "float16": "F16",
        "bfloat16": "BF16",
        "float32": "F32",
        "float64": "F64",
        "complex64": "C64",
        "complex128": "C128",
    }
    assert all(getattr(tt, name).code == _structs.CONSTANTS["TT_" + c] for name, c in short.items())
    names = {
        _structs.CONSTANTS["TT_" + n]: getattr(tt.errors, e)
        for n, e in (
            ("SHAPE", "ShapeError"),
            ("INVALID_ARG", "InvalidArgumentError"),
            ("INDEX", "OutOfRangeError"),
            ("OOM", "OutOfMemoryError"),
            ("IO", "FileError"),
            ("FORMAT", "FormatError"),
            ("NOT_IMPLEMENTED", "UnimplementedError"),
            ("DTYPE", "DtypeError"),
            ("DEVICE", "DeviceError"),
            ("AUTOGRAD", "AutogradError"),
            ("CANCELLED", "CancelledError"),
            ("CALLBACK", "CallbackError"),
        )
    }
    assert all(tt.errors.CLASSES[code] is e for code, e in names.items())


def test_every_function_is_exported():
    exported = set((ROOT / "src/capi/gen/exports.txt").read_text().split())
    assert set(_abi.RESULTS) <= exported
    for name in sorted(exported):
        getattr(_lib.lib, name)
    for name in _ops.HOME:
        assert callable(getattr(_ops, name))
