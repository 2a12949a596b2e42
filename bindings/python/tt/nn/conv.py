"""Transposed convolutions whose forward accepts the size of the result."""
from __future__ import annotations

from typing import Any, Sequence

from .._tensor import Tensor
from . import _layers, functional


def per_dimension(value: Any, n: int) -> tuple[int, ...]:
    """Returns a size as a tuple of n ints."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def output_padding(layer: Any, input: Tensor, output_size: Sequence[int], n: int) -> list[int]:
    """Returns the output_padding for a result of this size in its last n dimensions."""
    sizes = list(output_size)
    if len(sizes) not in (n, input.ndim):
        raise ValueError(f"{layer._class}: output_size must have {n} or {input.ndim} numbers")
    kernel = per_dimension(layer.kernel_size, n)
    stride = per_dimension(layer.stride, n)
    padding = per_dimension(layer.padding, n)
    dilation = per_dimension(layer.dilation, n)
    paddings = []
    for i, size in enumerate(sizes[-n:]):
        smallest = (
            (input.shape[i - n] - 1) * stride[i]
            - 2 * padding[i]
            + dilation[i] * (kernel[i] - 1)
            + 1
        )
        largest = smallest + stride[i] - 1
        if not smallest <= size <= largest:
            raise ValueError(
                f"{layer._class}: output_size[{i}] is {size}: must be {smallest} to {largest}"
            )
        paddings.append(size - smallest)
    return paddings


def forward(layer: Any, n: int, input: Tensor, output_size: Sequence[int] | None) -> Tensor:
    if output_size is None:
        return layer._forward(input)
    function = getattr(functional, f"conv_transpose{n}d")
    more = output_padding(layer, input, output_size, n)
    stride, padding = per_dimension(layer.stride, n), per_dimension(layer.padding, n)
    dilation = per_dimension(layer.dilation, n)
    return function(input, layer.weight, layer.bias, stride, padding, more, layer.groups, dilation)


class ConvTranspose1d(_layers.ConvTranspose1d):
    __doc__ = _layers.ConvTranspose1d.__doc__
    __module__ = "tt.nn"
    _class = "ConvTranspose1d"

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """output_size: the size (L,) of the result, or its whole shape, instead of
        output_padding."""
        return forward(self, 1, input, output_size)


class ConvTranspose2d(_layers.ConvTranspose2d):
    __doc__ = _layers.ConvTranspose2d.__doc__
    __module__ = "tt.nn"
    _class = "ConvTranspose2d"

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """output_size: the size (H, W) of the result, or its whole shape, instead of
        output_padding."""
        return forward(self, 2, input, output_size)


class ConvTranspose3d(_layers.ConvTranspose3d):
    __doc__ = _layers.ConvTranspose3d.__doc__
    __module__ = "tt.nn"
    _class = "ConvTranspose3d"

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """output_size: the size (D, H, W) of the result, or its whole shape, instead of
        output_padding."""
        return forward(self, 3, input, output_size)
