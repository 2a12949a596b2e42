"""The classes dtype, device, memory_format and Size, and their constants."""
from __future__ import annotations

from functools import partial
from math import prod
from operator import index
from struct import Struct
from typing import Any, Callable, Iterable, SupportsIndex, overload

from . import _dtype_tables
from .errors import DeviceError


class Named:
    """A constant that prints and pickles as its name in tt, with a row of _dtype_tables.py."""

    __slots__ = ()
    name: str
    library = "tt"  # the package in names that are shown: "torch" after as_torch()

    def __init__(self, *row: object) -> None:
        names: tuple[str, ...] = self.__slots__
        for name, value in zip(names, row):
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"{Named.library}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class dtype(Named):
    """The type of a tensor's elements. Each dtype is one object: compare with `is`.

    name: such as "float32".
    itemsize: bytes of an element.
    kind: "b" for bool, "i" for integers, "f" for floating point, "c" for complex.
    is_floating_point, is_complex, is_signed: bools.
    """

    __module__ = "tt"  # where pickle finds its objects, by their names
    __slots__ = (
        "name",
        "code",  # tt_dtype
        "itemsize",
        "kind",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "format",  # type code of the array module, "" without one
        "read",  # format of memoryview.cast; that of the parts for a complex dtype
        "typestr",  # NumPy's, "" without one
        "method",  # of Tensor, which converts to it
        "shown",  # part of the name that Tensor.type() returns
    )
    code: int
    itemsize: int
    kind: str
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    format: str
    read: str
    typestr: str
    method: str
    shown: str

    def to_complex(self) -> dtype:
        """Returns the complex dtype of this precision: complex128 for float64, else complex64."""
        return BY_NAME["complex128" if self.name == "float64" else "complex64"]

    def to_real(self) -> dtype:
        """Returns the dtype of the parts of a complex dtype; of others, self."""
        if not self.is_complex:
            return self
        return BY_NAME["float64" if self.name == "complex128" else "float32"]


class memory_format(Named):
    """The order of a tensor's elements in memory. ndim: dimensions of its tensors, 0 for any."""

    __module__ = "tt"
    __slots__ = ("name", "code", "ndim")
    code: int
    ndim: int


DTYPES: tuple[Any, ...] = (None, *(dtype(*row) for row in _dtype_tables.DTYPES))  # by tt_dtype
BY_NAME: dict[str, dtype] = {row[0]: value for row, value in zip(_dtype_tables.DTYPES, DTYPES[1:])}
BY_PYTHON_TYPE = {
    bool: BY_NAME["bool"],
    int: BY_NAME["int64"],
    float: BY_NAME["float64"],
    complex: BY_NAME["complex128"],
}
MEMORY_FORMATS = {row[0]: memory_format(*row) for row in _dtype_tables.MEMORY_FORMATS}
DEVICE_TYPES = {code: name for name, code in _dtype_tables.DEVICES.items()}
# PyTorch's other types: a script may name and compare them; a tensor on them is refused.
OTHER_DEVICES = (
    "xpu mps hpu mtia xla vulkan maia ipu lazy ve fpga opencl opengl privateuseone".split()
)
BOOL = BY_NAME["bool"]
int64 = BY_NAME["int64"]
float16, bfloat16 = BY_NAME["float16"], BY_NAME["bfloat16"]
float32, float64 = BY_NAME["float32"], BY_NAME["float64"]
complex64, complex128 = BY_NAME["complex64"], BY_NAME["complex128"]
contiguous_format = MEMORY_FORMATS["contiguous_format"]
preserve_format = MEMORY_FORMATS["preserve_format"]
legacy_contiguous_format = contiguous_format


class Defaults:
    """The default dtypes for floating-point and complex numbers and tensors."""

    float: dtype = float32
    complex: dtype = complex64


class device:
    """The device of a tensor's memory: device("cpu"), device("meta"), device("cuda:1"),
    device("cuda", 1) or device(1).

    type: "cpu", "cuda", "meta" or "ext" (of the application). index: an int; None for cpu and meta;
    of "cuda" without a number that of the current device (cuda.set_device).
    PyTorch's other types, such as "mps", can be named, and no tensor is on them.
    Raises DeviceError for any other name. `with device(…):` makes it the default device of this
    thread.
    """

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __new__(cls, type: str | device | int, index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        if isinstance(type, int) and not isinstance(type, bool) and index is None:
            return cls.of(_dtype_tables.DEVICES["cuda"], type)
        if not isinstance(type, str):
            raise TypeError(
                f"device(): argument 'type' must be str or device, not {type.__class__.__name__}"
            )
        kind, colon, number = type.partition(":")
        unknown = kind not in _dtype_tables.DEVICES and kind not in OTHER_DEVICES
        if unknown or colon and (index is not None or not number.isdigit()):
            raise DeviceError(
                f"device: '{type}' is no device. Expected one of cpu, cuda, meta device type at start "
                f"of device string: {type}"
            )
        if index is not None and index < 0:
            raise DeviceError(f"device: index is {index}: must not be negative")
        if kind in OTHER_DEVICES:
            instance = object.__new__(cls)
            instance.type, instance.index = kind, int(number) if colon else index
            return instance
        if kind == "cuda" and index is None and not colon:
            from ._lib import local

            return cls.of(_dtype_tables.DEVICES[kind], local.cuda_device)
        return cls.of(_dtype_tables.DEVICES[kind], int(number) if colon else index or 0)

    @classmethod
    def of(cls, code: int, index: int) -> device:
        """Returns the device of a tt_device_type and an index."""
        instance = object.__new__(cls)
        instance.type = DEVICE_TYPES[code]
        instance.index = index if instance.type in ("cuda", "ext") else None
        return instance

    def __enter__(self) -> device:
        """Makes this the default device of the thread within the block."""
        from ._lib import local

        local.devices.append(local.device)
        local.device = self
        return self

    def __exit__(self, *_: object) -> None:
        from ._lib import local

        local.device = local.devices.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (str(self),)

    @property
    def code(self) -> int:
        """The tt_device_type."""
        if self.type in OTHER_DEVICES:
            raise DeviceError(f"device: '{self}' is no device of tt: must be cpu, cuda or meta")
        return _dtype_tables.DEVICES[self.type]

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


WITHOUT_INDEX = {d.code: d for d in (device("cpu"), device("meta"))}  # one object each


DeviceObjType = device  # PyTorch's name of the class
item_of = tuple.__getitem__


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Size:
        made = tuple.__new__(cls, sizes)
        if all(type(n) is int for n in made):
            return made
        for i, n in enumerate(made):
            if not hasattr(n, "__index__"):
                kind = type(n).__name__
                raise TypeError(f"Size() takes an iterable of 'int' (item {i} is '{kind}')")
        return tuple.__new__(cls, (int(index(n)) for n in made))

    def numel(self) -> int:
        """Returns the number of elements of a tensor of this shape."""
        return prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex) -> int:
        ...

    @overload
    def __getitem__(self, key: slice) -> Size:
        ...

    def __getitem__(self, key: Any) -> Any:
        if type(key) is int:
            return item_of(self, key)
        items = item_of(self, key)
        return size_of(items) if isinstance(key, slice) else items

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(other + tuple(self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return size_of(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{Named.library}.Size([{', '.join(map(str, self))}])"


size_of: Any = partial(tuple.__new__, Size)  # of sizes that are known to be ints

# PACK[n](*ints) packs n ints as C's int64_t
PACK: list[Callable[..., bytes]] = [Struct(f"{n}q").pack for n in range(65)]
