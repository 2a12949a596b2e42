"""dtypes, devices, memory formats, sizes."""
from math import prod
from struct import Struct

from .errors import DeviceError

BUILTIN_BOOL, BUILTIN_INT, BUILTIN_FLOAT, BUILTIN_COMPLEX = bool, int, float, complex


class dtype:
    """The type of a tensor's elements. Compare by identity."""
    __slots__ = ("name", "code", "itemsize", "kind", "format")

    def __init__(self, name, code, itemsize, kind, format):
        self.name, self.code, self.itemsize, self.kind, self.format = name, code, itemsize, kind, format

    @property
    def is_floating_point(self):
        return self.kind == "f"

    @property
    def is_complex(self):
        return self.kind == "c"

    @property
    def is_signed(self):
        return self.kind != "b" and self.name != "uint8"

    def to_complex(self):
        return complex128 if self is float64 else complex64

    def __repr__(self):
        return "tt." + self.name

    def __reduce__(self):
        return self.name


# kind: b bool, i integer, f floating, c complex; format: of the array module, "" where it has none
bool = dtype("bool", 1, 1, "b", "")
uint8 = dtype("uint8", 2, 1, "i", "B")
int8 = dtype("int8", 3, 1, "i", "b")
int16 = short = dtype("int16", 4, 2, "i", "h")
int32 = int = dtype("int32", 5, 4, "i", "i")
int64 = long = dtype("int64", 6, 8, "i", "q")
float16 = half = dtype("float16", 7, 2, "f", "")
bfloat16 = dtype("bfloat16", 8, 2, "f", "")
float32 = float = dtype("float32", 9, 4, "f", "f")
float64 = double = dtype("float64", 10, 8, "f", "d")
complex64 = cfloat = dtype("complex64", 11, 8, "c", "")
complex128 = cdouble = dtype("complex128", 12, 16, "c", "")

DTYPES = (None, bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128)
BY_NAME = {d.name: d for d in DTYPES[1:]}
BY_PYTHON_TYPE = {BUILTIN_BOOL: bool, BUILTIN_INT: int64, BUILTIN_FLOAT: float64, BUILTIN_COMPLEX: complex128}


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
channels_last_3d = memory_format("channels_last_3d", 0, 5)  # of the binding alone


PUBLIC = {name: value for name, value in globals().items() if isinstance(value, (dtype, memory_format))}


class device:
    """Where a tensor lives: device("cpu"), device("cuda:1"), device("cuda", 1)."""
    __slots__ = ("type", "index", "code")
    NAMES = {1: "cpu", 2: "cuda", 3: "meta", 4: "ext"}
    CODES = {name: code for code, name in NAMES.items()}

    def __init__(self, name, index=None):
        if isinstance(name, device):
            self.type, self.index, self.code = name.type, name.index, name.code
            return
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
