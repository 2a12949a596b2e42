"""Discrete Fourier transforms, with the API of torch.fft."""
from __future__ import annotations

from typing import Any, Sequence

from . import _ops
from ._interception import overridable
from ._settings import get_default_dtype
from ._tensor import Tensor
from ._types import device as Device
from ._types import dtype as DType
from .errors import InvalidArgumentError

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def _factor(name: str | None) -> str:
    """The norm of PyTorch: None is "backward"."""
    return "backward" if name is None else name


def _sizes(
    name: str, s: int | Sequence[int] | None, dim: int | Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """s and dim as lists; an empty one means None."""
    if isinstance(s, int):
        s = [s]
    if isinstance(dim, int):
        dim = [dim]
    if dim is not None and len(dim) == 0:
        raise InvalidArgumentError(f"{name}: dim is empty: at least one dimension is needed")
    return list(s or ()), list(dim or ())


@overridable
def fft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the discrete Fourier transform of input along dim, a complex tensor.

    n: length to which input is cut or zero-padded; None for its size.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    return _ops.fft_fft(input, n, dim, _factor(norm), out=out)


@overridable
def ifft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the inverse discrete Fourier transform of input along dim, a complex tensor.

    n: length to which input is cut or zero-padded; None for its size.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    return _ops.fft_ifft(input, n, dim, _factor(norm), out=out)


@overridable
def rfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the first n // 2 + 1 elements of the transform of a real input along dim.

    n: length to which input is cut or zero-padded; None for its size.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    return _ops.fft_rfft(input, n, dim, _factor(norm), out=out)


@overridable
def irfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the n real numbers whose spectrum begins with input along dim.

    n: number of real elements; None for 2 * (size - 1).
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    return _ops.fft_irfft(input, n, dim, _factor(norm), out=out)


@overridable
def hfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the real transform of a Hermitian signal that begins with input along dim.

    n: number of real elements; None for 2 * (size - 1).
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    return _ops.fft_hfft(input, n, dim, _factor(norm), out=out)


@overridable
def ihfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the first n // 2 + 1 elements of the inverse transform of a real input.

    n: length to which input is cut or zero-padded; None for its size.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    return _ops.fft_ihfft(input, n, dim, _factor(norm), out=out)


@overridable
def fft2(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the discrete Fourier transform of input along two dimensions.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    sizes, dims = _sizes("fft2", s, dim)
    return _ops.fft_fft2(input, sizes, dims, _factor(norm), out=out)


@overridable
def ifft2(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the inverse discrete Fourier transform of input along two dimensions.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    sizes, dims = _sizes("ifft2", s, dim)
    return _ops.fft_ifft2(input, sizes, dims, _factor(norm), out=out)


@overridable
def rfft2(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the transform of a real input along two dimensions, half of it in the last.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    sizes, dims = _sizes("rfft2", s, dim)
    return _ops.fft_rfft2(input, sizes, dims, _factor(norm), out=out)


@overridable
def irfft2(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the real numbers with a spectrum along two dimensions, the last one halved.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    sizes, dims = _sizes("irfft2", s, dim)
    return _ops.fft_irfft2(input, sizes, dims, _factor(norm), out=out)


@overridable
def hfft2(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the real transform of a Hermitian signal along two dimensions.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    sizes, dims = _sizes("hfft2", s, dim)
    return _ops.fft_hfft2(input, sizes, dims, _factor(norm), out=out)


@overridable
def ihfft2(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the inverse transform of a real input along two dimensions, half of it in the last.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    sizes, dims = _sizes("ihfft2", s, dim)
    return _ops.fft_ihfft2(input, sizes, dims, _factor(norm), out=out)


@overridable
def fftn(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the discrete Fourier transform of input along several dimensions.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    dim: None for the last len(s) dimensions, or all if s is None.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    sizes, dims = _sizes("fftn", s, dim)
    return _ops.fft_fftn(input, sizes, dims, _factor(norm), out=out)


@overridable
def ifftn(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the inverse discrete Fourier transform of input along several dimensions.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    dim: None for the last len(s) dimensions, or all if s is None.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    sizes, dims = _sizes("ifftn", s, dim)
    return _ops.fft_ifftn(input, sizes, dims, _factor(norm), out=out)


@overridable
def rfftn(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the transform of a real input along several dimensions, half of it in the last.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    dim: None for the last len(s) dimensions, or all if s is None.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    sizes, dims = _sizes("rfftn", s, dim)
    return _ops.fft_rfftn(input, sizes, dims, _factor(norm), out=out)


@overridable
def irfftn(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the real numbers with a spectrum along several dimensions, the last one halved.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    dim: None for the last len(s) dimensions, or all if s is None.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    sizes, dims = _sizes("irfftn", s, dim)
    return _ops.fft_irfftn(input, sizes, dims, _factor(norm), out=out)


@overridable
def hfftn(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the real transform of a Hermitian signal along several dimensions.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    dim: None for the last len(s) dimensions, or all if s is None.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1, 1 / sqrt(n) or 1 / n. out: receives the result.
    """
    sizes, dims = _sizes("hfftn", s, dim)
    return _ops.fft_hfftn(input, sizes, dims, _factor(norm), out=out)


@overridable
def ihfftn(
    input: Tensor,
    s: int | Sequence[int] | None = None,
    dim: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the inverse transform of a real input, half of it in the last dimension.

    s: sizes to which input is cut or zero-padded; -1 or None for its own sizes.
    dim: None for the last len(s) dimensions, or all if s is None.
    norm: "backward" (or None), "ortho" or "forward": the result is multiplied by
    1 / n, 1 / sqrt(n) or 1. out: receives the result.
    """
    sizes, dims = _sizes("ihfftn", s, dim)
    return _ops.fft_ihfftn(input, sizes, dims, _factor(norm), out=out)


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Returns the frequencies of a transform of length n: 0, 1, …, then the negative ones,
    divided by n * d.

    d: distance between the elements of the signal. out: receives the result.
    layout and pin_memory are ignored.
    """
    if dtype is None:
        dtype = get_default_dtype() if out is None else out.dtype
    result = _ops.fft_fftfreq(n, d, dtype=dtype, device=device, out=out)
    return result.requires_grad_() if requires_grad else result


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Returns the frequencies of a transform of n real numbers: 0, 1, …, n // 2,
    divided by n * d.

    d: distance between the elements of the signal. out: receives the result.
    layout and pin_memory are ignored.
    """
    if dtype is None:
        dtype = get_default_dtype() if out is None else out.dtype
    result = _ops.fft_rfftfreq(n, d, dtype=dtype, device=device, out=out)
    return result.requires_grad_() if requires_grad else result


@overridable
def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Returns input with the frequency 0 moved to the middle of each dimension.

    dim: the dimensions; None for all.
    """
    return _ops.fft_fftshift(input, _sizes("fftshift", None, dim)[1])


@overridable
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Returns the inverse of fftshift: the middle of each dimension is moved to the front.

    dim: the dimensions; None for all.
    """
    return _ops.fft_ifftshift(input, _sizes("ifftshift", None, dim)[1])


def __dir__() -> list[str]:
    return __all__
