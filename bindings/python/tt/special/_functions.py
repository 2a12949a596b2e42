"""What the special functions of Python share: operators without a C function, dtypes, out=."""
from __future__ import annotations

from functools import lru_cache
from typing import Any

from .._settings import get_default_dtype
from .._convert import written
from .._promotion import result_type
from .._tensor import Tensor


def float_dtype(name: str, *values: Any) -> Any:
    """Returns the floating dtype of the results of a function of tensors and numbers."""
    tensors = [v for v in values if isinstance(v, Tensor)]
    if not tensors or not all(isinstance(v, (Tensor, int, float)) for v in values):
        kinds = ", ".join(type(v).__name__ for v in values)
        raise TypeError(f"{name}: takes tensors, or a tensor and numbers, not {kinds}")
    dtype = tensors[0].dtype if len(values) == 1 else result_type(*values)
    if dtype.is_complex:
        raise TypeError(f"{name}: {dtype} is not supported")
    return dtype if dtype.is_floating_point else get_default_dtype()


@lru_cache(maxsize=None)
def operator(name: str) -> Any:
    """Returns an operator that has no C function."""
    from ..library import find

    return find(name)


BESSEL = (  # in the order of operator `bessel`
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "airy_ai",
)


def computed(name: str, input: Tensor, out: Tensor | None) -> Tensor:
    """Returns a function of operator `bessel`; integers become the default dtype."""
    dtype = float_dtype(name, input)
    result: Tensor = operator("bessel")(input.to(dtype), BESSEL.index(name))
    return result if out is None else written(result, out, name)
