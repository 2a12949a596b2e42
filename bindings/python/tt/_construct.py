"""Calls the constructors of classes by their rows in the generated tables (_nn_classes.py, _optim_classes.py)."""
from ctypes import addressof, byref, c_double, c_int32, c_int64, create_string_buffer
from struct import Struct

from . import _convert as convert
from ._lib import fail, lib, local

# type of a row -> (conversion, format) of a number in an options struct
FIELDS = {
    "Int": (convert.integer, "q"),
    "Dim": (convert.integer, "q"),
    "Index": (convert.integer, "q"),
    "Float": (convert.real, "d"),
    "Bool": (convert.boolean, "i"),
}
LISTS = {"Int[]", "Shape", "Dims"}


def bind(name, rows, args, kwargs):
    """The arguments of a call by name, with defaults, as Python binds them."""
    names = [r[0] for r in rows if not r[4]]
    if len(args) > len(names):
        raise TypeError(
            f"{name}() takes at most {len(names)} positional arguments, {len(args)} were given"
        )
    values = dict(zip(names, args))
    known = {r[0] for r in rows}
    for key, value in kwargs.items():
        if key not in known:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if key in values:
            raise TypeError(f"{name}() got multiple values for argument '{key}'")
        values[key] = value
    for key, _, default, _, _ in rows:
        if key not in values:
            if default is None:
                raise TypeError(f"{name}() missing required argument '{key}'")
            values[key] = default[0]
    return values


def parameter(kind, value, op, arg, enums):
    """C arguments of a parameter of its own."""
    if kind in LISTS:
        return list(convert.int_list(value, op, arg))
    if kind == "Tensor![]":
        return [convert.pointers(value), convert.length(value)]
    if kind == "Float[]":
        return [Struct(f"{len(value)}d").pack(*value), convert.length(value)]
    if kind == "Optimizer":
        return [value._handle]
    if kind == "Scheduler[]":
        return [
            Struct(f"{len(value)}P").pack(*(s._handle._address for s in value)),
            convert.length(value),
        ]
    if kind.startswith("Enum<"):
        return [c_int32(convert.one_of(enums[kind[5:-1]], value, op, arg))]
    if kind in ("Int", "Dim", "Index"):
        return [c_int64(convert.integer(value, op, arg))]
    if kind == "Float":
        return [c_double(convert.real(value, op, arg))]
    if kind == "Bool":
        return [c_int32(convert.boolean(value, op, arg))]
    raise TypeError(f"{op}: {kind}")


def options(rows, values, op, enums, keep):
    """The options struct of the arguments that are not parameters; fields that are None stay unset."""
    bits, form, fields = 0, "Q", []
    for k, (arg, kind, _, _, _) in enumerate(rows):
        value = values[arg]
        bits |= (value is not None) << k
        base = kind.rstrip("?")
        if base in FIELDS:
            conversion, code = FIELDS[base]
            form += code
            fields.append(0 if value is None else conversion(value, op, arg))
        elif base == "DType":
            form += "i"
            fields.append(convert.dtype_code(value, op, arg))
        elif base == "Device":
            form += "ii"
            fields += convert.device_field(value, op, arg)
        elif base == "Tensor":
            form += "P"
            fields.append(convert.tensor_address(value, op, arg))
        elif base == "Float[2]":
            form += "dd"
            fields += [convert.real(x, op, f"{arg}[{i}]") for i, x in enumerate(value)]
        elif base == "Float[]":
            form += "Pq"
            fields += [address(Struct(f"{len(value)}d").pack(*value), keep), len(value)]
        elif base in LISTS:
            form += "Pq"
            data, n = convert.int_list(value, op, arg)
            keep.append(data)
            fields += [address(data, keep), n.value]
        else:
            form += "i"
            fields.append(0 if value is None else convert.one_of(enums[base[5:-1]], value, op, arg))
    return Struct(form).pack(bits, *fields)


def address(data, keep):
    buffer = create_string_buffer(data, max(len(data), 1))
    keep.append(buffer)
    return addressof(buffer)


def construct(made_of, name, row, values, enums):
    """The handle of a new object, of the class made_of."""
    function, _, rows = row
    given, keep = [], []
    for arg, kind, _, positional, _ in rows:
        if positional:
            given += parameter(kind, values[arg], name, arg, enums)
    optional = [r for r in rows if not r[3]]
    if optional:
        given.append(options(optional, values, name, enums, keep))
    made = made_of()
    if getattr(lib, function)(local.ctx, *given, byref(made)):
        fail()
    return made
