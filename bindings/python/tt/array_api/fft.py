"""Fourier transforms of the array API standard."""
from __future__ import annotations

from typing import Any, Callable

from .. import fft as _fft
from .._tensor import Tensor
from .._types import device as Device
from .._types import dtype as DType

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft"]
__all__ += ["irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]


def one_axis(function: Callable[..., Any], name: str) -> Any:
    """Returns the standard's function along one axis."""

    def transform(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return function(x, n, axis, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"Is {name} along an axis, whose size becomes n. norm: where 1 / n is."
    return transform


def several_axes(function: Callable[..., Any], name: str) -> Any:
    """Returns the standard's function along several axes."""

    def transform(
        x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Tensor:
        return function(x, s, axes, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"Is {name} along axes, whose sizes become s. norm: where 1 / n is."
    return transform


fft, ifft = one_axis(_fft.fft, "fft"), one_axis(_fft.ifft, "ifft")
rfft, irfft = one_axis(_fft.rfft, "rfft"), one_axis(_fft.irfft, "irfft")
hfft, ihfft = one_axis(_fft.hfft, "hfft"), one_axis(_fft.ihfft, "ihfft")
fftn, ifftn = several_axes(_fft.fftn, "fftn"), several_axes(_fft.ifftn, "ifftn")
rfftn, irfftn = several_axes(_fft.rfftn, "rfftn"), several_axes(_fft.irfftn, "irfftn")


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Returns the frequencies of fft's results, for samples at distances d."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Returns the frequencies of rfft's results, for samples at distances d."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Moves frequency 0 to the middle."""
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Moves frequency 0 from the middle to the beginning."""
    return _fft.ifftshift(x, axes)
