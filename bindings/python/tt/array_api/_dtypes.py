"""Dtypes of the array API standard."""
from __future__ import annotations

from functools import reduce
from typing import Any

from .. import _limits
from .._promotion import promote_types
from .._tensor import Tensor
from .._types import BY_NAME
from .._types import device as Device
from .._types import dtype as DType

KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8",),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]
NAMES = ("bool", *KINDS["numeric"])
DEFAULTS = {"real floating": "float32", "complex floating": "complex64", "integral": "int64"}
OF_NUMBERS = {bool: "b", int: "i", float: "f", complex: "c"}


def isdtype(dtype: DType, kind: Any) -> bool:
    """Returns whether dtype is of a kind: a dtype, the name of a kind, or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"isdtype: kind is {kind!r}: must be one of {', '.join(KINDS)}")
    return dtype.name in KINDS[kind]


def dtype_of(x: Any) -> DType:
    return x.dtype if isinstance(x, Tensor) else x


def common(dtypes: list[DType], numbers: list[Any]) -> DType:
    """Returns the common dtype of dtypes and Python numbers. A number widens within its kind
    only."""
    promoted_dtype = reduce(promote_types, dtypes)
    for number in numbers:
        kind = OF_NUMBERS.get(type(number), "f")
        if "bifc".index(kind) > "bifc".index(promoted_dtype.kind):
            wide = promoted_dtype.name in ("float64", "complex128")
            names = {"i": "int64", "f": "float32", "c": "complex128" if wide else "complex64"}
            promoted_dtype = BY_NAME[names[kind]]
    return promoted_dtype


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Returns the dtype to which arrays, dtypes and Python numbers are promoted."""
    dtypes = [dtype_of(x) for x in arrays_and_dtypes if isinstance(x, (Tensor, DType))]
    if not dtypes:
        raise ValueError("result_type: needs an array or a dtype")
    return common(dtypes, [x for x in arrays_and_dtypes if not isinstance(x, (Tensor, DType))])


def promoted(*xs: Any) -> tuple[Tensor, ...]:
    """Converts arrays and Python numbers to arrays of their common dtype."""
    from .._create import scalar_tensor

    arrays = [x for x in xs if isinstance(x, Tensor)]
    if not arrays:
        raise TypeError("at least one argument must be an array")
    dtype = result_type(*xs)
    return tuple(
        x.to(dtype)
        if isinstance(x, Tensor)
        else scalar_tensor(x, dtype=dtype, device=arrays[0].device)
        for x in xs
    )


def can_cast(from_: Any, to: DType, /) -> bool:
    """Returns whether a dtype, or that of an array, can be promoted to another one."""
    return promote_types(dtype_of(from_), to) is to


def finfo(type: Any, /) -> _limits.finfo:
    """Returns the limits of a floating dtype or of an array's dtype. `dtype` is a dtype object."""
    info = _limits.finfo(dtype_of(type))
    info.dtype = BY_NAME[info.dtype]  # type: ignore[assignment]
    return info


def iinfo(type: Any, /) -> _limits.iinfo:
    """Returns the limits of an integer dtype or of an array's dtype. `dtype` is a dtype object."""
    info = _limits.iinfo(dtype_of(type))
    info.dtype = BY_NAME[info.dtype]  # type: ignore[assignment]
    return info


def astype(
    x: Tensor, dtype: DType, /, *, copy: bool = True, device: Device | str | None = None
) -> Tensor:
    """Returns x converted to a dtype. copy=False: x itself if it has this dtype."""
    if x.dtype.is_complex and not dtype.is_complex and dtype.name != "bool":
        raise TypeError(f"astype: x is {x.dtype}: a complex array is not converted to {dtype}")
    return x.to(device=device, dtype=dtype, copy=copy)


class Info:
    """The result of __array_namespace_info__."""

    def capabilities(self) -> dict[str, Any]:
        """Returns the supported optional behaviour."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        return Device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        defaults = {kind: BY_NAME[name] for kind, name in DEFAULTS.items()}
        return {**defaults, "indexing": BY_NAME["int64"]}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Returns {name: dtype} for a kind or a tuple of kinds."""
        if kind is None:
            names = NAMES
        elif isinstance(kind, tuple):
            names = tuple(name for name in NAMES if isdtype(BY_NAME[name], kind))
        else:
            names = KINDS[kind]
        return {name: BY_NAME[name] for name in names}

    def devices(self) -> list[Device]:
        """Returns the CPU and the CUDA devices."""
        from .. import cuda

        return [Device("cpu"), *(Device("cuda", i) for i in range(cuda.device_count()))]


def __array_namespace_info__() -> Info:
    """Returns an object that describes dtypes, devices and capabilities."""
    return Info()
