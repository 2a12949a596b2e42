"""Forward-mode differentiation with dual tensors. A tangent is a directional derivative.

make_dual pairs a tensor with a tangent, operators compute the tangents of their results along with
the results, and unpack_dual returns the tangent of a result: the product of the Jacobian matrix and
the given tangents. Views and writes in place have tangents, too. Levels do not nest; tt.func.jvp
does. The API is that of torch.autograd.forward_ad.
"""
from __future__ import annotations

from collections import namedtuple
from contextlib import ContextDecorator
from ctypes import byref
from typing import Any

from .._convert import instance
from .._lib import call
from .._tensor import Tensor, TensorHandle, tensor_result, wrap
from ..errors import AutogradError, ShapeError
from .._depth import depth

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])


def enter_dual_level() -> int:
    """Opens a level on this thread, which make_dual requires. Returns its number, 0."""
    call("tt_dual_level_push")
    depth.duals += 1
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the level. Its tensors lose their tangents."""
    if level not in (None, 0):
        raise AutogradError(f"exit_dual_level: level is {level}: the open level is 0")
    call("tt_dual_level_pop")
    depth.duals -= 1


class dual_level(ContextDecorator):
    """Opens a level for a block, or for each call of a function that it decorates."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Returns a view of tensor that has a tangent, a tensor of its shape and dtype."""
    instance(Tensor, tensor, "make_dual", "tensor")
    instance(Tensor, tangent, "make_dual", "tangent")
    if level is not None and level < 0:
        raise AutogradError("make_dual: no level is open: call enter_dual_level first")
    if tensor.shape != tangent.shape:
        raise ShapeError(
            f"make_dual: tensor is {list(tensor.shape)}, tangent is {list(tangent.shape)}: "
            "must be equal"
        )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"make_dual: tensor is {tensor.dtype}: must be floating or complex")
    if tensor.dtype is not tangent.dtype:
        raise ValueError(
            f"make_dual: tensor is {tensor.dtype}, tangent is {tangent.dtype}: must be equal"
        )
    dual: Any = tensor_result("tt_make_dual", tensor, tangent)
    dual._given_tangent = tangent  # unpack_dual returns the same object
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> Any:
    """Returns (primal, tangent) of a tensor. tangent is None if there is none."""
    instance(Tensor, tensor, "unpack_dual", "tensor")
    if level is not None and level < 0:
        return UnpackedDualTensor(tensor, None)
    primal, tangent = TensorHandle(), TensorHandle()
    call("tt_unpack_dual", tensor, byref(primal), byref(tangent))
    if not tangent:
        return UnpackedDualTensor(tensor, None)
    found, given = wrap(tangent), getattr(tensor, "_given_tangent", None)
    same = given is not None and given._address == found._address
    return UnpackedDualTensor(wrap(primal), given if same else found)
