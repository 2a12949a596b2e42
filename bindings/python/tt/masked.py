"""torch.masked: reductions and normalizations over the elements where a mask is True.

A mask is a bool tensor that broadcasts to the shape of the input; None keeps all elements. Elements
that are masked out count as the value that changes nothing, such as 0 in a sum, and a result
without elements is that value.
"""
from __future__ import annotations

from math import inf, nan
from typing import Any, Callable

from . import _ops as ops
from . import _types
from ._limits import iinfo
from ._masked_tensor import MaskedTensor as MaskedTensor
from ._masked_tensor import as_masked_tensor as as_masked_tensor
from ._masked_tensor import is_masked_tensor as is_masked_tensor
from ._masked_tensor import masked_tensor as masked_tensor
from ._tensor import Tensor
from ._types import dtype as DType

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def mask_of(input: Tensor, mask: Tensor | None) -> Tensor | None:
    """Returns the mask in the shape of the input."""
    if mask is None:
        return None
    if mask.ndim > input.ndim:
        raise IndexError(
            f"masked: mask has {mask.ndim} dimensions, the input {input.ndim}: must not have more"
        )
    return mask.to(_types.BY_NAME["bool"]).expand(input.shape)


def kept(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """Returns the input with a value in place of what is masked out."""
    found = mask_of(input, mask)
    return input if found is None else ops.where(found, input, input.new_tensor(value))


def dims_of(input: Tensor, dim: Any) -> list[int]:
    """Returns the dimensions to reduce; all for None and for an empty tuple."""
    if dim is None or dim == ():
        return list(range(input.ndim))
    dims = [dim] if isinstance(dim, int) else list(dim)
    n = max(input.ndim, 1)
    for d in dims:
        if not -n <= d < n:
            raise IndexError(f"masked: dim is {d}, the input has {input.ndim} dimensions")
    found = [d % n for d in dims]
    if len(set(found)) != len(found):
        raise RuntimeError(f"masked: dim is {dim}: appears more than once")
    return found if input.ndim else []


def least(input: Tensor) -> Any:
    """Returns the smallest value of the input's dtype."""
    if input.dtype.kind == "bool":
        return False
    inexact = input.is_floating_point() or input.is_complex()
    return -inf if inexact else iinfo(input.dtype).min


def greatest(input: Tensor) -> Any:
    """Returns the largest value of the input's dtype."""
    if input.dtype.kind == "bool":
        return True
    return inf if input.is_floating_point() else iinfo(input.dtype).max


def of_sums(input: Tensor, dtype: DType | None) -> DType:
    """Returns the dtype of sums and products: int64 for bools and integers."""
    if dtype is not None:
        return dtype
    inexact = input.is_floating_point() or input.is_complex()
    return input.dtype if inexact else _types.BY_NAME["int64"]


# ---- reductions ----


def sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the sums over dim."""
    x = kept(input.to(of_sums(input, dtype)), mask, 0)
    dims = dims_of(input, dim)
    return x.sum(dims, keepdim=bool(keepdim)) if dims else x.clone()


def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the products over dim."""
    x = kept(input.to(of_sums(input, dtype)), mask, 1)
    for d in sorted(dims_of(input, dim), reverse=True):
        x = x.prod(d, keepdim=bool(keepdim))
    return x


def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the cumulative sums along dim."""
    x = input if dtype is None else input.to(dtype)
    return kept(x, mask, 0).cumsum(dim, dtype=x.dtype)


def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the cumulative products along dim."""
    x = input if dtype is None else input.to(dtype)
    return kept(x, mask, 1).cumprod(dim, dtype=x.dtype)


def extreme(
    function: Callable[..., Tensor], value: Callable[[Tensor], Any], doc: str
) -> Callable[..., Tensor]:
    """Returns a reduction to the largest or the smallest element."""

    def call(
        input: Tensor,
        dim: Any = None,
        *,
        keepdim: bool | None = False,
        dtype: DType | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        x = kept(input, mask, value(input))
        return function(x, dims_of(input, dim), keepdim=bool(keepdim)).to(dtype or input.dtype)

    call.__doc__ = doc
    call.__name__ = call.__qualname__ = function.__name__
    return call


def position(
    function: Callable[..., Tensor], value: Callable[[Tensor], Any], doc: str
) -> Callable[..., Tensor]:
    """Returns a function to the positions of the largest or the smallest elements."""

    def call(
        input: Tensor,
        dim: int | None = None,
        *,
        keepdim: bool | None = False,
        dtype: DType | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        x = kept(input, mask, value(input))
        return function(x, dim, keepdim=bool(keepdim)).to(dtype or input.dtype)

    call.__doc__ = doc
    call.__name__ = call.__qualname__ = function.__name__
    return call


amax = extreme(ops.amax, least, "Returns the largest elements over dim.")
amin = extreme(ops.amin, greatest, "Returns the smallest elements over dim.")
argmax = position(
    ops.argmax, least, "Returns the positions of the largest elements, in the input's dtype."
)
argmin = position(
    ops.argmin, greatest, "Returns the positions of the smallest elements, in the input's dtype."
)


def count(input: Tensor, dims: list[int], keepdim: bool, mask: Tensor | None) -> Tensor:
    """Returns the number of elements over dims, in the input's dtype."""
    ones = kept(ops.ones_like(input.detach()), mask, 0)
    return ones.sum(dims, keepdim=keepdim) if dims else ones


def inexact(input: Tensor, dtype: DType | None, op: str) -> Tensor:
    """Returns the input in the dtype of the result, which must not be an integer."""
    x = input if dtype is None else input.to(dtype)
    if not (x.is_floating_point() or x.is_complex()):
        raise ValueError(f"{op}: the dtype is {x.dtype}: must be floating or complex")
    return x


def mean(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the means over dim; nan without elements."""
    x, dims = inexact(input, dtype, "masked.mean"), dims_of(input, dim)
    total = sum(x, tuple(dims), keepdim=keepdim, mask=mask) if dims else kept(x, mask, 0)
    return total / count(x, dims, bool(keepdim), mask)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the medians along dim, the lower one of two; nan without elements."""
    x = inexact(input, dtype, "masked.median")
    if mask is None:
        return x.median(dim, keepdim=bool(keepdim)).values
    if bool(x.isnan().any()):
        raise ValueError("masked.median: input has nan: with a mask it must not")
    return kept(x, mask, nan).nanmedian(dim, keepdim=bool(keepdim)).values


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the norms of order ord over dim."""
    x = kept(input, mask, inf if ord == -inf else 0)
    order = 2.0 if ord is None else ord
    dims = dims_of(input, dim)
    result: Tensor = ops.find("tt", "linalg_vector_norm")(
        x, order, dims, bool(keepdim), dtype=dtype
    )
    return result


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the variances over dim: sums of squares divided by the number of elements less
    correction, which is 1 by default, and 0 if unbiased is False."""
    if unbiased is not None and correction is not None:
        raise RuntimeError("masked.var: unbiased and correction are given: must be one of them")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    x, dims = input if dtype is None else input.to(dtype), dims_of(input, dim)
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_types.BY_NAME["float32"])
    centred = kept(x - mean(x, tuple(dims), keepdim=True, mask=mask), mask, 0)
    squares = centred.abs() ** 2
    total = squares.sum(dims, keepdim=bool(keepdim)) if dims else squares
    number = count(total.new_ones(()).expand(x.shape), dims, bool(keepdim), mask) - correction
    return (total / number.clamp(min=0)).to(x.dtype)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the square roots of var()."""
    found = var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    )
    return found.sqrt()


def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the logarithms of the sums of exponentials over dim."""
    x = input if dtype is None else input.to(dtype)
    return kept(x, mask, least(x)).logsumexp(dims_of(input, dim), keepdim=keepdim).to(x.dtype)


# ---- normalizations ----


def softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns softmax along dim; nan without elements."""
    x = input if dtype is None else input.to(dtype)
    return kept(x, mask, least(x)).softmax(dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the logarithm of softmax along dim; nan without elements."""
    x = input if dtype is None else input.to(dtype)
    return kept(x, mask, least(x)).log_softmax(dim)


def softmin(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns softmax of -input along dim; nan without elements."""
    x = input if dtype is None else input.to(dtype)
    return (-kept(x, mask, greatest(x))).softmax(dim)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Divides the input by its norm along dim, at least eps. What is masked out becomes 0."""
    x = input if dtype is None else input.to(dtype)
    return kept(x, mask, 0) / norm(x, ord, dim, keepdim=True, mask=mask).clamp(min=eps)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Returns log(exp(input) + exp(other))."""
    x, y = (t if dtype is None else t.to(dtype) for t in (input, other))
    return ops.logaddexp(kept(x, input_mask, -inf), kept(y, other_mask, -inf))


def __dir__() -> list[str]:
    return __all__
