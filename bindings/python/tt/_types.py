"""dtypes, devices, memory formats, sizes."""
from math import prod
from struct import Struct

from . import _tables
from .errors import DeviceError


class Named:
    """What tt has under its name, of which there is one: a row of _tables.py."""

    __slots__ = ()

    def __init__(self, *row):
        for name, value in zip(self.__slots__, row):
            setattr(self, name, value)

    def __repr__(self):
        return "tt." + self.name

    def __reduce__(self):
        return self.name


class dtype(Named):
    """The type of a tensor's elements. Compare by identity. kind: b bool, i integer, f floating, c complex."""

    __slots__ = (
        "name",
        "code",
        "itemsize",
        "kind",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "format",
        "read",
        "typestr",
        "method",
        "shown",
    )

    def to_complex(self):
        return BY_NAME["complex128" if self.name == "float64" else "complex64"]


class memory_format(Named):
    """How the elements of a result lie in memory. ndim: of the tensors that it is for, 0: any."""

    __slots__ = ("name", "code", "ndim")


DTYPES = (None, *(dtype(*row) for row in _tables.DTYPES))
BY_NAME = {d.name: d for d in DTYPES[1:]}
BY_PYTHON_TYPE = {
    kind: BY_NAME[name]
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"))
}
DEVICE_TYPES = {code: name for name, code in _tables.DEVICES.items()}
PUBLIC = {
    **BY_NAME,
    **{alias: BY_NAME[name] for alias, name in _tables.ALIASES.items()},
    **{row[0]: memory_format(*row) for row in _tables.MEMORY_FORMATS},
}
BUILTIN_INT = int
globals().update(PUBLIC)  # from here on, int is a dtype


class device:
    """Where a tensor lives: device("cpu"), device("cuda:1"), device("cuda", 1)."""

    __slots__ = ("type", "index")

    def __new__(cls, type, index=None):
        if isinstance(type, device):
            return type
        if not isinstance(type, str):
            raise TypeError(
                f"device(): argument 'type' must be str or device, not {type.__class__.__name__}"
            )
        kind, colon, number = type.partition(":")
        if kind not in _tables.DEVICES or colon and (index is not None or not number.isdigit()):
            raise DeviceError(
                f"device: '{type}' is no device: must be cpu, meta, cuda or cuda:INDEX"
            )
        return cls.of(_tables.DEVICES[kind], BUILTIN_INT(number) if colon else index or 0)

    @classmethod
    def of(cls, code, index):
        made = object.__new__(cls)
        made.type = DEVICE_TYPES[code]
        made.index = index if made.type in ("cuda", "ext") else None
        return made

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (str(self),)

    @property
    def code(self):
        return _tables.DEVICES[self.type]

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return (
            f"device(type='{self.type}')"
            if self.index is None
            else f"device(type='{self.type}', index={self.index})"
        )


ONLY = {d.code: d for d in (device("cpu"), device("meta"))}  # of which there is no second


class Size(tuple):
    """The shape of a tensor: a tuple of ints."""

    __slots__ = ()

    def numel(self):
        return prod(self)

    def __getitem__(self, key):
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other):
        return Size(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other):
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times):
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self):
        return f"tt.Size([{', '.join(map(str, self))}])"


# PACK[n](*ints) -> the n int64 as C reads them
PACK = [Struct(f"{n}q").pack for n in range(65)]
