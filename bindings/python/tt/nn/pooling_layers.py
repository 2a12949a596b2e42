"""Pooling layers with more arguments than in C: the size of the result and random samples."""
from __future__ import annotations

from typing import Any, Sequence, Union

from .._tensor import Tensor
from . import _layers, functional
from .layer import ModuleHandle

Ints = Union[int, Sequence[int]]
Ratios = Union[float, Sequence[float]]


# ---- the inverse of maximum pooling ----


def unpooled(
    layer: Any, n: int, input: Tensor, indices: Tensor, output_size: Sequence[int] | None
) -> Tensor:
    if output_size is None:
        return layer._forward(input, indices)
    function = getattr(functional, f"max_unpool{n}d")
    return function(
        input, indices, layer.kernel_size, layer.stride, layer.padding, list(output_size)
    )


class MaxUnpool1d(_layers.MaxUnpool1d):
    __doc__ = _layers.MaxUnpool1d.__doc__
    __module__ = "tt.nn"
    _class = "MaxUnpool1d"

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """output_size: the size (L,) of the result, or its whole shape."""
        return unpooled(self, 1, input, indices, output_size)


class MaxUnpool2d(_layers.MaxUnpool2d):
    __doc__ = _layers.MaxUnpool2d.__doc__
    __module__ = "tt.nn"
    _class = "MaxUnpool2d"

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """output_size: the size (H, W) of the result, or its whole shape."""
        return unpooled(self, 2, input, indices, output_size)


class MaxUnpool3d(_layers.MaxUnpool3d):
    __doc__ = _layers.MaxUnpool3d.__doc__
    __module__ = "tt.nn"
    _class = "MaxUnpool3d"

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """output_size: the size (D, H, W) of the result, or its whole shape."""
        return unpooled(self, 3, input, indices, output_size)


# ---- fractional pooling ----


def with_one_ratio(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Returns arguments for C, which has one ratio for all dimensions."""
    ratio = values["output_ratio"]
    if (ratio is None) == (values["output_size"] is None):
        raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
    if not isinstance(ratio, (tuple, list)):
        return values
    if not all(0 < r < 1 for r in ratio):
        raise ValueError(f"{name}: output_ratio is {ratio}: must be between 0 and 1")
    return {**values, "output_ratio": ratio[0]}


def fractional(layer: Any, function: Any, input: Tensor) -> Any:
    """Calls the function with the layer's arguments."""
    return function(
        input,
        layer.kernel_size,
        layer.output_size,
        layer.output_ratio,
        layer.return_indices,
        layer._random_samples,
    )


class FractionalMaxPool2d(_layers.FractionalMaxPool2d):
    __doc__ = _layers.FractionalMaxPool2d.__doc__
    __module__ = "tt.nn"
    _class = "FractionalMaxPool2d"
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Ratios | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        """output_ratio: may be two numbers.

        _random_samples: shifts of the windows in [0, 1): (N, C, 2); None: drawn for each call
        """
        self._initialize(
            kernel_size=kernel_size,
            output_size=output_size,
            output_ratio=output_ratio,
            return_indices=return_indices,
        )
        self.register_buffer("_random_samples", _random_samples)

    def _new_module(self, values: dict[str, Any]) -> ModuleHandle:
        return super()._new_module(with_one_ratio(self._class, values))

    def forward(self, input: Tensor) -> Any:
        return fractional(self, functional.fractional_max_pool2d, input)


class FractionalMaxPool3d(_layers.FractionalMaxPool3d):
    __doc__ = _layers.FractionalMaxPool3d.__doc__
    __module__ = "tt.nn"
    _class = "FractionalMaxPool3d"
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Ratios | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        """output_ratio: may be three numbers.

        _random_samples: shifts of the windows in [0, 1): (N, C, 3); None: drawn for each call
        """
        self._initialize(
            kernel_size=kernel_size,
            output_size=output_size,
            output_ratio=output_ratio,
            return_indices=return_indices,
        )
        self.register_buffer("_random_samples", _random_samples)

    def _new_module(self, values: dict[str, Any]) -> ModuleHandle:
        return super()._new_module(with_one_ratio(self._class, values))

    def forward(self, input: Tensor) -> Any:
        return fractional(self, functional.fractional_max_pool3d, input)
