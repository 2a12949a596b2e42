"""Gradient clipping, and flattening, pruning and parametrizations of parameters, with the API of
torch.nn.utils."""
from __future__ import annotations

from ctypes import c_double
from struct import Struct
from typing import Any, Iterable, TypeVar, Union

from ..._class_name import class_name
from ... import _convert as convert
from ... import _ops as ops
from ..._lib import fail, lib, local
from ..._layout import SparseGrads
from ..._tensor import Tensor, tensor_result
from ...autograd import no_grad
from ..module import Module
from . import parametrizations, parametrize, prune, rnn, stateless
from .fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from .reparameterize import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from .skip import skip_init

M = TypeVar("M", bound=Module)
Tensors = Union[Tensor, Iterable[Tensor]]

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]
NORM_OPTIONS = Struct("Qdi0q").pack  # tt_clip_grad_norm_opts
BOTH_GIVEN = 3


def as_tuple(tensors: Tensors) -> tuple[Tensor, ...]:
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients of the parameters so that their total norm is at most max_norm.

    Returns the norm before clipping, 0-dim. It has order norm_type, over all gradients as one
    vector.
    error_if_nonfinite: raises RuntimeError if that norm is nan or inf, and changes nothing.
    foreach is ignored.
    """
    params = as_tuple(parameters)
    if SparseGrads.seen:
        from ... import _sparse_grad

        with _sparse_grad.as_dense_leaves(params) as leaves:
            return _clip_grad_norm_(tuple(leaves), max_norm, norm_type, error_if_nonfinite)
    return _clip_grad_norm_(params, max_norm, norm_type, error_if_nonfinite)


def _clip_grad_norm_(
    params: tuple[Tensor, ...], max_norm: float, norm_type: float, error_if_nonfinite: bool
) -> Tensor:
    if float(norm_type) <= 0:  # no norm: C refuses it
        grads = [p.grad for p in params if p.grad is not None]
        total = get_total_norm(grads, norm_type, error_if_nonfinite)
        clip_grads_with_norm_(params, max_norm, total)
        return total
    return tensor_result(
        "tt_clip_grad_norm_",
        convert.pointers(params),
        convert.length(params),
        c_double(float(max_norm)),
        NORM_OPTIONS(BOTH_GIVEN, float(norm_type), bool(error_if_nonfinite)),
    )


clip_grad_norm = clip_grad_norm_  # its former name


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Converts the weights of convolutions of two dimensions to a memory format. Returns module."""
    for m in module.modules():
        weight = getattr(m, "weight", None)
        if type(m).__name__ in ("Conv2d", "ConvTranspose2d") and weight is not None:
            weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Converts the weights of convolutions of three dimensions to a memory format. Returns
    module."""
    for m in module.modules():
        weight = getattr(m, "weight", None)
        if type(m).__name__ in ("Conv3d", "ConvTranspose3d") and weight is not None:
            weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamps every element of the parameters' gradients to [-clip_value, clip_value].

    foreach is ignored.
    """
    if SparseGrads.seen:
        from ... import _sparse_grad

        with _sparse_grad.as_dense_leaves(as_tuple(parameters)) as leaves:
            _clip_grad_value_(tuple(leaves), clip_value)
    else:
        _clip_grad_value_(as_tuple(parameters), clip_value)


def _clip_grad_value_(params: tuple[Tensor, ...], clip_value: float) -> None:
    if lib.tt_clip_grad_value_(
        local.ctx, convert.pointers(params), convert.length(params), c_double(float(clip_value))
    ):
        fail()


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Returns the norm of order norm_type of all tensors as one vector, 0-dim.

    error_if_nonfinite: raises RuntimeError if it is nan or inf. foreach is ignored.
    """
    tensors = as_tuple(tensors)
    if not tensors:
        return ops.zeros(())
    order = float(norm_type)
    with no_grad():
        total = ops.stack([ops.norm(t, order) for t in tensors]).norm(order)
    if error_if_nonfinite and not bool(ops.isfinite(total)):
        raise RuntimeError(f"the total norm of order {norm_type} is {total.item()}")
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies the parameters' gradients by min(1, max_norm / (total_norm + 1e-6)).

    foreach is ignored.
    """
    with no_grad():
        factor = ops.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for p in as_tuple(parameters):
            if p.grad is not None:
                p.grad.mul_(factor)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Returns all parameters, flattened in row-major order, as one 1-D tensor."""
    return ops.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes each parameter a view of consecutive elements of vec, which is 1-D."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"vec must be a Tensor, not {class_name(vec)}")
    start = 0
    for p in parameters:
        end = start + p.numel()
        p.data = vec[start:end].view(p.shape).data
        start = end


def __dir__() -> list[str]:
    return __all__
