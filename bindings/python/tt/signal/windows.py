"""Windows of signal processing, with the names of torch.signal.windows.

M: the number of values. sym: True: symmetric, for filters; False: one period of a periodic window,
for spectra. dtype: float32 or float64.
"""
from __future__ import annotations

from math import pi, sqrt
from typing import Any, Iterable

from .. import _ops as ops
from .._tensor import Tensor
from .._types import Defaults, float32, float64
from .._types import device as Device
from .._types import dtype as DType

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def places(name: str, M: int, dtype: DType | None) -> Tensor:
    """Returns 0 … M - 1 in float64."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if (dtype or Defaults.float) not in (float32, float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return ops.arange(M, dtype=float64, device="cpu")


def finished(
    values: Tensor, dtype: DType | None, layout: Any, device: Device | str | None, grad: bool
) -> Tensor:
    """Returns the values as a window function returns them."""
    like = ops.empty(0, dtype=dtype or Defaults.float, layout=layout, device=device)
    return values.to(like).requires_grad_(grad)


def period(M: int, sym: bool) -> int:
    """Returns the distance after which a window repeats, at least 1."""
    return max(M - 1 if sym else M, 1)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns exp(-|n - center| / tau). center: by default the middle."""
    n = places("exponential", M, dtype)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2
    return finished((-(n - center).abs() / tau).exp(), dtype, layout, device, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns sin(pi (n + 1/2) / M): half a wave."""
    n = places("cosine", M, dtype)
    length = M + 1 if not sym and M > 1 else max(M, 1)
    return finished(((n + 0.5) * (pi / length)).sin(), dtype, layout, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the bell curve with the standard deviation std."""
    n = places("gaussian", M, dtype)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    middle = (M if not sym and M > 1 else M - 1) / 2
    return finished(
        (-(((n - middle) / (std * sqrt(2))) ** 2)).exp(), dtype, layout, device, requires_grad
    )


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns i0(beta sqrt(1 - x^2)) / i0(beta), x from -1 to 1."""
    n = places("kaiser", M, dtype)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    x = n * (2 / period(M, sym)) - (1 if M > 1 else 0)
    root = (1 - x * x).clamp(min=0).sqrt()
    top = ops.full((), beta, dtype=float64, device="cpu").i0()
    return finished((beta * root).i0() / top, dtype, layout, device, requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the triangular window, 0 at its ends."""
    n = places("bartlett", M, dtype)
    x = n * (2 / period(M, sym)) - (1 if M > 1 else 0)
    return finished(1 - x.abs(), dtype, layout, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the sum of (-1)^i a[i] cos(2 pi i n / period)."""
    n = places("general_cosine", M, dtype)
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    terms = [
        (-1) ** i * w * (n * (2 * pi * i / period(M, sym))).cos() for i, w in enumerate(weights)
    ]
    values = ops.stack(terms).sum(0) if M != 1 else n + 1
    return finished(values, dtype, layout, device, requires_grad)


def of_cosines(
    M: int,
    a: list[float],
    sym: bool,
    dtype: DType | None,
    layout: Any,
    device: Device | str | None,
    grad: bool,
) -> Tensor:
    """Calls general_cosine."""
    return general_cosine(
        M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=grad
    )


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns alpha - (1 - alpha) cos(2 pi n / period)."""
    places("general_hamming", M, dtype)
    return of_cosines(M, [alpha, 1.0 - alpha], sym, dtype, layout, device, requires_grad)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns general_hamming with alpha 0.54."""
    places("hamming", M, dtype)
    return of_cosines(M, [0.54, 1.0 - 0.54], sym, dtype, layout, device, requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns general_hamming with alpha 0.5."""
    places("hann", M, dtype)
    return of_cosines(M, [0.5, 0.5], sym, dtype, layout, device, requires_grad)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns general_cosine of Blackman's weights."""
    places("blackman", M, dtype)
    return of_cosines(M, [0.42, 0.5, 0.08], sym, dtype, layout, device, requires_grad)


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns general_cosine of Nuttall's weights."""
    places("nuttall", M, dtype)
    weights = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return of_cosines(M, weights, sym, dtype, layout, device, requires_grad)


def __dir__() -> list[str]:
    return __all__
