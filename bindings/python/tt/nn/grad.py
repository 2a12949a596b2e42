"""Gradients of convolutions, with the names of torch.nn.grad."""
from __future__ import annotations

from typing import Any, Sequence

from .. import _ops as ops
from .._tensor import Tensor
from ..autograd import enable_grad, grad
from . import functional

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def of_input(
    name: str, input_size: Sequence[int], weight: Tensor, output: Tensor, *options: Any
) -> Tensor:
    """Returns the gradient of a convolution with respect to its input."""
    if input_size is None:
        raise ValueError(f"grad.{name}_input requires specifying an input_size")
    x = ops.empty(tuple(input_size), dtype=weight.dtype, device=weight.device).requires_grad_()
    with enable_grad():
        y = getattr(functional, name)(x, weight.detach(), None, *options)
    return grad(y, x, output)[0]


def of_weight(
    name: str, input: Tensor, weight_size: Sequence[int], output: Tensor, *options: Any
) -> Tensor:
    """Returns the gradient of a convolution with respect to its weight."""
    w = ops.empty(tuple(weight_size), dtype=input.dtype, device=input.device).requires_grad_()
    with enable_grad():
        y = getattr(functional, name)(input.detach(), w, None, *options)
    return grad(y, w, output)[0]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv1d with respect to its input, of shape input_size."""
    options = (stride, padding, dilation, groups)
    return of_input("conv1d", input_size, weight, grad_output, *options)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv1d with respect to its weight, of shape weight_size."""
    options = (stride, padding, dilation, groups)
    return of_weight("conv1d", input, weight_size, grad_output, *options)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv2d with respect to its input, of shape input_size."""
    options = (stride, padding, dilation, groups)
    return of_input("conv2d", input_size, weight, grad_output, *options)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv2d with respect to its weight, of shape weight_size."""
    options = (stride, padding, dilation, groups)
    return of_weight("conv2d", input, weight_size, grad_output, *options)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv3d with respect to its input, of shape input_size."""
    options = (stride, padding, dilation, groups)
    return of_input("conv3d", input_size, weight, grad_output, *options)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv3d with respect to its weight, of shape weight_size."""
    options = (stride, padding, dilation, groups)
    return of_weight("conv3d", input, weight_size, grad_output, *options)


def __dir__() -> list[str]:
    return __all__
