"""The Python array API standard, version 2024.12, over tt's tensors: `x.__array_namespace__()`.

Functions have the standard's names and signatures. Dtypes follow the standard's promotion, in which
a 0-dim array counts like any other. Elsewhere tt promotes as PyTorch does. The dtypes uint16,
uint32 and uint64 are missing.
"""
from __future__ import annotations

from math import e, inf, nan, pi

from .._dlpack import from_dlpack
from .._types import Size, device, dtype
from .._types import BY_NAME
from . import fft, linalg
from ._creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from ._dtypes import __array_namespace_info__, astype, can_cast, finfo, iinfo, isdtype, result_type
from ._elementwise import *  # noqa: F403
from ._elementwise import __all__ as _elementwise
from ._manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
)
from ._reductions import (
    all,
    any,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from ._searching import (
    argmax,
    argmin,
    argsort,
    nonzero,
    searchsorted,
    sort,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from .linalg import matmul, matrix_transpose, tensordot, vecdot

__array_api_version__ = "2024.12"
newaxis = None
bool = BY_NAME["bool"]
int8, int16, int32, int64 = (BY_NAME[f"int{n}"] for n in (8, 16, 32, 64))
uint8 = BY_NAME["uint8"]
float32, float64 = BY_NAME["float32"], BY_NAME["float64"]
complex64, complex128 = BY_NAME["complex64"], BY_NAME["complex128"]
__all__ = [name for name in dir() if name[0] != "_" and name not in ("annotations", "BY_NAME")]
__all__ += ["__array_api_version__", "__array_namespace_info__"]


def __dir__() -> list[str]:
    return __all__
