"""dtypes, devices, memory formats, sizes."""
from math import prod
from struct import Struct

from . import _tables
from .errors import DeviceError


class dtype:
    """The type of a tensor's elements. Compare by identity."""
    __slots__ = ("name", "code", "itemsize", "kind", "format", "read", "typestr", "method", "shown", "is_floating_point", "is_complex", "is_signed")

    def __init__(self, name, code, itemsize, kind, format, read, typestr, method, shown):
        """A row of _tables.py. kind: b bool, i integer, f floating, c complex."""
        self.name, self.code, self.itemsize, self.kind, self.format = name, code, itemsize, kind, format
        self.read, self.typestr, self.method, self.shown = read, typestr, method, shown
        self.is_floating_point, self.is_complex, self.is_signed = kind == "f", kind == "c", kind != "b" and name != "uint8"

    def to_complex(self):
        return BY_NAME["complex128" if self.name == "float64" else "complex64"]

    def __repr__(self):
        return "tt." + self.name

    def __reduce__(self):
        return self.name


DTYPES = (None, *(dtype(*row) for row in _tables.DTYPES))
BY_NAME = {d.name: d for d in DTYPES[1:]}
BY_PYTHON_TYPE = {kind: BY_NAME[name] for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"))}
BUILTIN_INT = int
globals().update(BY_NAME, **{alias: BY_NAME[name] for alias, name in _tables.ALIASES.items()})  # from here on, int is a dtype


class memory_format:
    """How the elements of a result lie in memory. ndim: of the tensors that it is for, 0: any."""
    __slots__ = ("name", "code", "ndim")

    def __init__(self, name, code, ndim=0):
        self.name, self.code, self.ndim = name, code, ndim

    def __repr__(self):
        return "tt." + self.name

    def __reduce__(self):
        return self.name


contiguous_format = memory_format("contiguous_format", 1)
preserve_format = memory_format("preserve_format", 2)
channels_last = memory_format("channels_last", 3, 4)
channels_last_3d = memory_format("channels_last_3d", 4, 5)


PUBLIC = {name: value for name, value in globals().items() if type(value) in (dtype, memory_format)}


class device:
    """Where a tensor lives: device("cpu"), device("cuda:1"), device("cuda", 1)."""
    __slots__ = ("type", "index", "code")
    NAMES = {1: "cpu", 2: "cuda", 3: "meta", 4: "ext"}
    CODES = {name: code for code, name in NAMES.items()}

    def __init__(self, name, index=None):
        if isinstance(name, device):
            name = str(name)
        if not isinstance(name, str):
            raise TypeError(f"device(): argument 'name' must be str or device, not {type(name).__name__}")
        kind, colon, number = name.partition(":")
        if kind not in self.CODES or colon and (index is not None or not number.isdigit()):
            raise DeviceError(f"device: '{name}' is no device: must be cpu, meta, cuda or cuda:INDEX")
        self.type, self.code = kind, self.CODES[kind]
        many = kind in ("cuda", "ext")
        self.index = (BUILTIN_INT(number) if colon else index or 0) if many else None

    @classmethod
    def of(cls, code, index):
        d = cls.__new__(cls)
        d.code, d.type = code, cls.NAMES[code]
        d.index = index if d.type in ("cuda", "ext") else None
        return d

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (str(self),)


CPU = device.of(1, 0)


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
