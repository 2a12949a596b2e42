"""Calls the C constructors of the generated classes: layers, optimizers and schedules.

A class lists its arguments as rows (name, type, default in a tuple or None, whether it is a
parameter of the C function). All other arguments are fields of the constructor's options struct.
The type of an enum is {name: value}.
"""
from __future__ import annotations

from ctypes import addressof, byref, c_double, c_int32, c_int64, create_string_buffer
from struct import Struct
from typing import Any, Mapping, Sequence, TypeVar

from . import _convert as convert
from ._lib import Handle, fail, lib, local
from .errors import InvalidArgumentError

H = TypeVar("H", bound=Handle)
Row = tuple[str, Any, Any, bool]


def truth(x: Any, op: str, arg: str) -> int:
    """Returns 0 or 1 for a bool or an integer, as in Linear(2, 2, bias=0)."""
    return int(x != 0) if isinstance(x, int) else convert.boolean(x, op, arg)


# type -> (conversion, format) of a number in an options struct
FIELDS: dict[str, tuple[Any, str]] = {
    "Int": (convert.integer, "q"),
    "Dim": (convert.integer, "q"),
    "Index": (convert.integer, "q"),
    "Float": (convert.real, "d"),
    "Bool": (truth, "i"),
}
INT_LISTS = {"Int[]", "Shape", "Dims"}


def parameter(kind: Any, value: Any, op: str, arg: str) -> list[Any]:
    """Returns the ctypes arguments of a value that is a parameter of the C function."""
    if isinstance(kind, dict):
        return [c_int32(convert.one_of(kind, value, op, arg))]
    if kind in INT_LISTS:
        return list(convert.int_list(value, op, arg))
    if kind == "Tensor![]":
        return [convert.pointers(value), convert.length(value)]
    if kind == "Float[]":
        return [Struct(f"{len(value)}d").pack(*value), convert.length(value)]
    if kind == "Optimizer":
        return [value._handle]
    if kind == "Scheduler[]":
        addresses = [scheduler._handle._address for scheduler in value]
        return [Struct(f"{len(value)}P").pack(*addresses), convert.length(value)]
    if kind in ("Int", "Dim", "Index"):
        return [c_int64(convert.integer(value, op, arg))]
    if kind == "Float":
        return [c_double(convert.real(value, op, arg))]
    if kind == "Bool":
        return [c_int32(truth(value, op, arg))]
    raise TypeError(f"{op}: {kind}")


def field(kind: Any, value: Any, op: str, arg: str, keep: list[Any]) -> tuple[str, list[Any]]:
    """Returns the format and values of an options field. The caller keeps `keep`, which owns
    lists."""
    if isinstance(kind, dict):
        return "i", [0 if value is None else convert.one_of(kind, value, op, arg)]
    kind = kind.rstrip("?")
    if kind in FIELDS:
        conversion, code = FIELDS[kind]
        return code, [0 if value is None else conversion(value, op, arg)]
    if kind == "DType":
        return "i", [convert.dtype_code(value, op, arg)]
    if kind == "Device":
        return "ii", list(convert.device_field(value, op, arg))
    if kind == "Tensor":
        return "P", [convert.tensor_address(value, op, arg)]
    if kind == "Float[2]":
        if len(value) != 2:
            raise InvalidArgumentError(f"{op}: {arg} is {value}: must have 2 numbers")
        return "dd", [convert.real(x, op, f"{arg}[{i}]") for i, x in enumerate(value)]
    if kind == "Float[]":
        return "Pq", [address(Struct(f"{len(value)}d").pack(*value), keep), len(value)]
    data, n = convert.int_list(value, op, arg)
    return "Pq", [address(data, keep), n.value]


def options(rows: Sequence[Row], values: Mapping[str, Any], op: str, keep: list[Any]) -> bytes:
    """Returns the options struct of the rows. A field whose value is None counts as not given."""
    given, form, fields = 0, "Q", []
    for k, (arg, kind, _, _) in enumerate(rows):
        value = values[arg]
        if value is None and kind == "Device?":
            value = local.device
        given |= (value is not None) << k
        code, parts = field(kind, value, op, arg, keep)
        form += code
        fields += parts
    return Struct(form).pack(given, *fields)


def address(data: bytes, keep: list[Any]) -> int:
    """Returns the address of a copy of data that lives as long as keep."""
    buffer = create_string_buffer(data, max(len(data), 1))
    keep.append(buffer)
    return addressof(buffer)


def construct(
    handle: type[H], function: str, name: str, rows: Sequence[Row], values: Mapping[str, Any]
) -> H:
    """Calls the C constructor with named values. Returns the new object as a `handle`."""
    given: list[Any] = []
    keep: list[Any] = []
    for arg, kind, _, is_parameter in rows:
        if is_parameter:
            given += parameter(kind, values[arg], name, arg)
    optional = [row for row in rows if not row[3]]
    if optional:
        given.append(options(optional, values, name, keep))
    instance = handle.__new__(handle)
    if getattr(lib, function)(local.ctx, *given, byref(instance)):
        fail()
    return instance
