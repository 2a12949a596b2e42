"""What numbers of a dtype can be, and what dtypes combine to."""
from math import e, inf, nan, pi  # noqa: F401  (names of tt)

from . import _ops, _types
from ._tensor import Tensor

newaxis = None
# dtype -> bits, digits behind the point in binary, the greatest exponent, decimal digits that it keeps
FLOATS = {"float16": (16, 10, 15, 3), "bfloat16": (16, 7, 127, 2), "float32": (32, 23, 127, 6), "float64": (64, 52, 1023, 15),
          "complex64": (32, 23, 127, 6), "complex128": (64, 52, 1023, 15)}


class Limits:
    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n):g}' for n in self.SHOWN)}, dtype={self.dtype})"


class finfo(Limits):
    """The limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""
    SHOWN = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")

    def __init__(self, type=_types.float32):
        if type.name not in FLOATS:
            raise TypeError(f"finfo() takes a floating dtype, not {type}: use iinfo")
        self.bits, digits, top, kept = FLOATS[type.name]
        self.eps, self.max, self.tiny, self.resolution, self.dtype = 2.0 ** -digits, (2 - 2.0 ** -digits) * 2.0 ** top, 2.0 ** (1 - top), float(f"1e-{kept}"), type.name
        self.min, self.smallest_normal = -self.max, self.tiny


class iinfo(Limits):
    """The limits of an integer dtype: bits, min, max."""
    SHOWN = ("min", "max")

    def __init__(self, type):
        if type.kind != "i":
            raise TypeError(f"iinfo() takes an integer dtype, not {type}: use finfo")
        self.bits, self.dtype = 8 * type.itemsize, type.name
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -self.max - 1 if type.is_signed else 0


def is_floating_point(input):
    return input.is_floating_point()


def is_complex(input):
    return input.is_complex()


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
