"""Helpers of training, by the names of torch.nn.utils."""
from ctypes import byref, c_double
from struct import Struct

from ..._kinds import kind_name
from ... import _convert as convert
from ... import _ops as ops
from ..._lib import fail, lib, local
from ..._tensor import Tensor, new
from ...autograd import no_grad

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]
NORM_OPTIONS = Struct("Qdi0q").pack


def listed(parameters):
    return (parameters,) if isinstance(parameters, Tensor) else tuple(parameters)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients so that their norm, taken of all as one vector, is at most max_norm; returns what it was."""
    params, total = listed(parameters), new(Tensor)
    options = NORM_OPTIONS(3, float(norm_type), bool(error_if_nonfinite))
    if lib.tt_clip_grad_norm_(
        local.ctx,
        convert.pointers(params),
        convert.length(params),
        c_double(float(max_norm)),
        options,
        byref(total),
    ):
        fail()
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limits every element of the gradients to [-clip_value, clip_value]."""
    params = listed(parameters)
    if lib.tt_clip_grad_value_(
        local.ctx, convert.pointers(params), convert.length(params), c_double(float(clip_value))
    ):
        fail()


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors as one vector."""
    tensors = listed(tensors)
    if not tensors:
        return ops.zeros(())
    with no_grad():
        total = ops.stack([ops.norm(t, float(norm_type)) for t in tensors]).norm(float(norm_type))
    if error_if_nonfinite and not bool(ops.isfinite(total)):
        raise RuntimeError(
            f"the total norm of order {norm_type} is {total.item()}: cannot be clipped"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients by max_norm / (total_norm + 1e-6) where that is less than 1."""
    with no_grad():
        factor = ops.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for p in listed(parameters):
            if p.grad is not None:
                p.grad.mul_(factor)


def parameters_to_vector(parameters):
    """All parameters, one after the other, as one vector."""
    return ops.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Gives the parameters the values of a vector: views of it."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"vec must be a Tensor, not {kind_name(vec)}")
    at = 0
    for p in parameters:
        p.data = vec[at : at + p.numel()].view(p.shape).data
        at += p.numel()
