"""What numbers of a dtype can be, and what dtypes combine to."""
from math import e, inf, nan, pi  # noqa: F401  (names of tt)

from . import _ops, _tables, _types
from ._tensor import Tensor

newaxis = None


class Limits:
    __slots__ = ("dtype",)

    def __init__(self, type=_types.float32):
        if type.name not in self._rows:
            raise TypeError(f"{self.__class__.__name__}() takes no {type}")
        self.dtype = type.name
        for name, value in zip(self.__slots__, self._rows[type.name]):
            setattr(self, name, value)

    def __repr__(self):
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in self.__slots__[1:])
        return f"{type(self).__name__}({shown}, dtype={self.dtype})"


class finfo(Limits):
    """The limits of a floating dtype."""
    __slots__ = ("bits", "resolution", "min", "max", "eps", "smallest_normal", "tiny")
    _rows = _tables.FLOATS


class iinfo(Limits):
    """The limits of an integer dtype."""
    __slots__ = ("bits", "min", "max")
    _rows = _tables.INTEGERS


def result_type(tensor1, tensor2):
    """The dtype of an operator's result on these two; either may be a number."""
    kinds = [_ops.empty((0,) if x.ndim else (), dtype=x.dtype, device="meta") if isinstance(x, Tensor) else x for x in (tensor1, tensor2)]
    if not any(isinstance(x, Tensor) for x in kinds):
        kinds = [_ops.full((), x) for x in kinds]
    return (kinds[0] * kinds[1]).dtype


def promote_types(type1, type2):
    """The dtype that holds what both hold."""
    return (_ops.empty((0,), dtype=type1, device="meta") * _ops.empty((0,), dtype=type2, device="meta")).dtype


def can_cast(from_, to):
    """Whether a conversion keeps the kind of number: not from real to integer, complex to real, a signed one to uint8 or any to bool."""
    return "bifc".index(from_.kind) <= "bifc".index(to.kind) and not (from_.kind == to.kind == "i" and from_.is_signed and not to.is_signed)
