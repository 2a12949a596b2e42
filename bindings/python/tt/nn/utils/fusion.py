"""Folding of batch normalisations into the layers before them, for evaluation."""
from __future__ import annotations

import copy
from typing import Any

from ... import _ops as ops
from ..._tensor import Tensor
from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def folded(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    scale: Tensor | None,
    shift: Tensor | None,
    channels: int,
) -> tuple[Parameter, Parameter]:
    """Returns the weight and bias of the layer fused with the normalisation.

    channels: the dimension of the weight that has the output channels.
    """
    factor = ops.rsqrt(var + eps)
    if scale is not None:
        factor = factor * scale
    shape = [-1 if d == channels else 1 for d in range(weight.ndim)]
    offset = (-mean if bias is None else bias - mean) * factor
    if shift is not None:
        offset = offset + shift
    new_weight = (weight * factor.reshape(shape)).to(weight.dtype)
    new_bias = offset.to(weight.dtype if bias is None else bias.dtype)
    return (
        Parameter(new_weight, weight.requires_grad),
        Parameter(new_bias, weight.requires_grad if bias is None else bias.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Returns the weight and bias of the convolution of fuse_conv_bn_eval.

    bn_rm, bn_rv, bn_eps, bn_w, bn_b: running mean and variance, eps, weight and bias of the
        normalisation. transpose: the convolution is transposed.
    """
    return folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Returns the weight and bias of the linear layer of fuse_linear_bn_eval."""
    return folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def fused(layer: Any, bn: Any, channels: int) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs a batch normalisation with running statistics")
    result = copy.deepcopy(layer)
    result.weight, result.bias = folded(
        result.weight,
        result.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        channels,
    )
    return result


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Returns a copy of a convolution that includes the following batch normalisation.

    Both must be in evaluation mode. transpose: the convolution is transposed.
    """
    return fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Returns a copy of a linear layer that includes the following batch normalisation.

    Both must be in evaluation mode. The normalisation has one channel, or as many as the layer has
    outputs.
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    return fused(linear, bn, 0)
