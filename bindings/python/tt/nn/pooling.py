"""Pooling and interpolation of torch.nn.functional.

return_indices selects the operator with two results, and None in output_size keeps a size of the
input.
"""
from __future__ import annotations

from typing import Any, Literal, Sequence, Union, overload

from .. import _ops
from .._interception import overridable
from .._tensor import Tensor

Ints = Union[int, Sequence[int]]
Ratios = Union[float, Sequence[float]]
Sizes = Union[int, Sequence[Union[int, None]]]


def _pool(name: str, return_indices: bool, *arguments: Any) -> Any:
    """Calls the operator `name` or its variant with indices."""
    if return_indices:
        return tuple(getattr(_ops, name + "_with_indices")(*arguments))
    return getattr(_ops, name)(*arguments)


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    ...


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    ...


@overridable
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest element of each window of the last dimension; nan is largest.

    input: (C, L) or (N, C, L)
    kernel_size: length of a window
    stride: step between windows; None: kernel_size
    padding: elements smaller than any other, added on both sides; at most half of kernel_size
    dilation: step between the elements of a window
    ceil_mode: rounds the number of windows up
    return_indices: returns (values, indices); indices are int64 positions in the last dimension
    """
    return _pool(
        "max_pool1d", return_indices, input, kernel_size, stride, padding, dilation, ceil_mode
    )


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    ...


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    ...


@overridable
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest element of each window of the last two dimensions; nan is largest.

    input: (C, H, W) or (N, C, H, W)
    kernel_size: (rows, columns) of a window, or one int for both, as for the next three
    stride: step between windows; None: kernel_size
    padding: elements smaller than any other, added on all sides; at most half of kernel_size
    dilation: step between the elements of a window
    ceil_mode: rounds the number of windows up
    return_indices: returns (values, indices); indices are int64 positions in the flattened image
    """
    return _pool(
        "max_pool2d", return_indices, input, kernel_size, stride, padding, dilation, ceil_mode
    )


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    ...


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    ...


@overridable
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest element of each window of the last three dimensions; nan is largest.

    input: (C, D, H, W) or (N, C, D, H, W)
    kernel_size: (depth, rows, columns) of a window, or one int for all, as for the next three
    stride: step between windows; None: kernel_size
    padding: elements smaller than any other, added on all sides; at most half of kernel_size
    dilation: step between the elements of a window
    ceil_mode: rounds the number of windows up
    return_indices: returns (values, indices); indices are int64 positions in the flattened volume
    """
    return _pool(
        "max_pool3d", return_indices, input, kernel_size, stride, padding, dilation, ceil_mode
    )


def _sizes(input: Tensor, output_size: Sizes) -> Any:
    """Replaces None by the input's own size."""
    if not isinstance(output_size, (tuple, list)) or not isinstance(input, Tensor):
        return output_size
    if None not in output_size:
        return output_size
    own = input.shape[-len(output_size) :]
    return tuple(o if size is None else size for size, o in zip(output_size, own))


@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = False
) -> Tensor:
    ...


@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    ...


@overridable
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest element of each of output_size windows that cover the last dimension
    evenly.

    input: (C, L) or (N, C, L)
    output_size: number of windows; None: L
    return_indices: returns (values, indices); indices are int64 positions in the last dimension
    """
    out, indices = _ops.adaptive_max_pool1d(input, _sizes(input, output_size))
    return (out, indices) if return_indices else out


@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = False
) -> Tensor:
    ...


@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    ...


@overridable
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest element of each of output_size windows that cover the image evenly.

    input: (C, H, W) or (N, C, H, W)
    output_size: (rows, columns) of windows, or one int for both; None: the input's size
    return_indices: returns (values, indices); indices are int64 positions in the flattened image
    """
    out, indices = _ops.adaptive_max_pool2d(input, _sizes(input, output_size))
    return (out, indices) if return_indices else out


@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = False
) -> Tensor:
    ...


@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    ...


@overridable
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest element of each of output_size windows that cover the volume evenly.

    input: (C, D, H, W) or (N, C, D, H, W)
    output_size: (depth, rows, columns) of windows, or one int for all; None: the
        input's size
    return_indices: returns (values, indices); indices are int64 positions in the flattened volume
    """
    out, indices = _ops.adaptive_max_pool3d(input, _sizes(input, output_size))
    return (out, indices) if return_indices else out


@overridable
def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Returns the mean of each of output_size windows that cover the image evenly.

    input: (C, H, W) or (N, C, H, W)
    output_size: (rows, columns) of windows, or one int for both; None: the input's size
    """
    return _ops.adaptive_avg_pool2d(input, _sizes(input, output_size))


@overridable
def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """Returns the mean of each of output_size windows that cover the volume evenly.

    input: (C, D, H, W) or (N, C, D, H, W)
    output_size: (depth, rows, columns) of windows, or one int for all; None: the
        input's size
    """
    return _ops.adaptive_avg_pool3d(input, _sizes(input, output_size))


def _output_size(
    name: str, input: Tensor, dims: int, output_size: Ints | None, output_ratio: Ratios | None
) -> Any:
    """Returns output_size, or the sizes of input times output_ratio."""
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: either output_size or output_ratio must be given")
    if output_ratio is None:
        return output_size
    ratios = [output_ratio] * dims if isinstance(output_ratio, float) else output_ratio
    if not all(0 < ratio < 1 for ratio in ratios):
        raise ValueError(f"{name}: output_ratio is {output_ratio}: must be in (0, 1)")
    return [int(size * ratio) for size, ratio in zip(input.shape[-dims:], ratios)]


@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratios | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    ...


@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratios | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    ...


@overridable
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest element of each of output_size windows that begin at pseudo-random
    positions.

    input: (C, H, W) or (N, C, H, W)
    kernel_size: sizes of a window, or one int for all
    output_size: numbers of windows, or one int for all
    output_ratio: instead of output_size, its ratio to the size of input, in (0, 1)
    return_indices: returns (values, indices); indices are int64 positions in the flattened
        image
    _random_samples: shifts of the windows in [0, 1): (N, C, 2); None: drawn
    """
    name = "fractional_max_pool2d"
    size = _output_size(name, input, 2, output_size, output_ratio)
    out, indices = _ops.fractional_max_pool2d(input, kernel_size, size, _random_samples)
    return (out, indices) if return_indices else out


@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratios | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    ...


@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratios | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    ...


@overridable
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest element of each of output_size windows that begin at pseudo-random
    positions.

    input: (C, D, H, W) or (N, C, D, H, W)
    kernel_size: sizes of a window, or one int for all
    output_size: numbers of windows, or one int for all
    output_ratio: instead of output_size, its ratio to the size of input, in (0, 1)
    return_indices: returns (values, indices); indices are int64 positions in the flattened
        volume
    _random_samples: shifts of the windows in [0, 1): (N, C, 3); None: drawn
    """
    name = "fractional_max_pool3d"
    size = _output_size(name, input, 3, output_size, output_ratio)
    out, indices = _ops.fractional_max_pool3d(input, kernel_size, size, _random_samples)
    return (out, indices) if return_indices else out


@overridable
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes all dimensions but the first two to `size` or by scale_factor.

    input: (N, C, W), (N, C, H, W) or (N, C, D, H, W)
    size: of the result, an int for each dimension or one for all
    scale_factor: instead of size, a number for each dimension or one for all
    mode: "nearest", "nearest-exact" or "area"; by the number of dimensions "linear" (1), "bilinear"
        or "bicubic" (2), "trilinear" (3)
    align_corners: the centres of the corner elements of input and result coincide, not their edges
    recompute_scale_factor: computes the scale from the rounded sizes
    antialias: a smaller result averages the input, as PIL does; for "bilinear" and "bicubic"
    """
    scales = {}
    for name, given in (("size", size), ("scale_factor", scale_factor)):
        if isinstance(given, (tuple, list)) and isinstance(input, Tensor):
            if len(given) != input.dim() - 2:
                raise ValueError(
                    f"interpolate: {name} has {len(given)} numbers: "
                    f"must be one number or {input.dim() - 2}"
                )
    if isinstance(scale_factor, (tuple, list)):
        scales = dict(zip(("scale_w", "scale_h", "scale_d"), reversed(scale_factor)))
        scale_factor = None
    return _ops.interpolate(
        input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias, **scales
    )
