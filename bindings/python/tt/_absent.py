"""PyTorch's names for features that tt lacks. Importing one works; using it raises."""
from __future__ import annotations

from typing import Any, NoReturn

from ._limits import FINFO
from ._types import dtype
from .errors import UnimplementedError


def absent_function(name: str, why: str) -> Any:
    """Returns a function that raises UnimplementedError with this name and reason."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnimplementedError(f"{name}: {why}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Raises UnimplementedError: {why}."
    return function


def absent_class(name: str, why: str) -> Any:
    """Returns a class that has no instances: its constructor raises."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnimplementedError(f"{name}: {why}")

    doc = f"Cannot be made: {why}."
    return type(name.rpartition(".")[2], (), {"__new__": __new__, "__doc__": doc})


# Of PyTorch's dtypes of one byte: bits, resolution, min, max, eps, smallest normal, tiny
FLOAT8: dict[str, Any] = {
    "float8_e4m3fn": (8, 1.0, -448.0, 448.0, 2**-3, 2**-6, 2**-6),
    "float8_e4m3fnuz": (8, 1.0, -240.0, 240.0, 2**-3, 2**-7, 2**-7),
    "float8_e5m2": (8, 1.0, -57344.0, 57344.0, 2**-2, 2**-14, 2**-14),
    "float8_e5m2fnuz": (8, 1.0, -57344.0, 57344.0, 2**-3, 2**-15, 2**-15),
    "float8_e8m0fnu": (8, 1.0, 2**-127, 2.0**127, 1.0, 2**-127, 2**-127),
}


def absent_dtypes() -> dict[str, dtype]:
    """Returns dtypes of which no tensor can be made: their codes are not C's."""
    FINFO.update(FLOAT8)
    made = {}
    for i, name in enumerate(FLOAT8):
        made[name] = dtype(name, -1 - i, 1, "f", True, False, True, "", "", "", "", name)
    made["complex32"] = dtype(
        "complex32", -9, 4, "c", False, True, True, "", "", "", "", "complex32"
    )
    for i, name in enumerate("qint8 quint8 qint32 quint4x2 quint2x4".split()):
        size = 4 if name == "qint32" else 1
        signed = not name.startswith("qu")
        made[name] = dtype(name, -20 - i, size, "i", False, False, signed, "", "", "", "", name)
    return made


ABSENT_DTYPES = absent_dtypes()


def with_name(message: str) -> str:
    """Replaces the code of one of these dtypes in an error of C by its name."""
    for found in ABSENT_DTYPES.values():
        message = message.replace(
            f" is {found.code}:", f" is {found.name}, of which there are no tensors:"
        )
    return message
