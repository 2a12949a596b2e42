"""Forward-mode differentiation with dual tensors. A tangent is a directional derivative.

make_dual pairs a tensor with a tangent, operators record their calls, and unpack_dual returns the
tangent of a result. The tangent is the product of the Jacobian matrix and the given tangents. It is
computed on request as in tt.func.jvp, by the gradient of the gradient, so operators without a
second gradient have no tangent, and a dual tensor must not be written in place. Levels do not nest.
The API is that of torch.autograd.forward_ad.
"""
from __future__ import annotations

from collections import namedtuple

from .. import _ops as ops
from .._convert import instance
from .._tensor import Tensor
from ..errors import AutogradError, ShapeError
from . import enable_grad, grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])


class Level:
    """The dual tensors of an open level, and their tangents."""

    def __init__(self) -> None:
        self.duals: list[Tensor] = []
        self.tangents: list[Tensor] = []


levels: list[Level] = []


def enter_dual_level() -> int:
    """Opens a level, which make_dual requires. Returns its number, 0."""
    if levels:
        raise AutogradError("enter_dual_level: a level is open already: levels do not nest")
    levels.append(Level())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the level. Its tensors lose their tangents."""
    if not levels:
        raise AutogradError("exit_dual_level: no level is open: call enter_dual_level first")
    if level not in (None, -1, 0):
        raise AutogradError(f"exit_dual_level: level is {level}: the open level is 0")
    levels.pop()


class dual_level:
    """Opens a level for a block: with dual_level(): …"""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Returns an alias of tensor that has a tangent, a tensor of its shape and dtype."""
    instance(Tensor, tensor, "make_dual", "tensor")
    instance(Tensor, tangent, "make_dual", "tangent")
    if not levels:
        raise AutogradError("make_dual: no level is open: use it in a block of dual_level()")
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
    with enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    levels[-1].duals.append(dual)
    levels[-1].tangents.append(tangent)
    return dual


def tangent_of(tensor: Tensor, level: Level) -> Tensor | None:
    """Returns the tangent of a tensor; None if it does not depend on a dual tensor."""
    for dual, tangent in zip(level.duals, level.tangents):
        if tensor is dual:
            return tangent
    if not level.duals or not tensor.requires_grad:
        return None
    with enable_grad():
        weight = ops.find("tt", "zeros_like")(tensor, requires_grad=True)
        grads = grad([tensor], level.duals, [weight], create_graph=True, allow_unused=True)
        pairs = [(g, t) for g, t in zip(grads, level.tangents) if g is not None]
        if not pairs:
            return None
        # g is linear in weight: its gradient by weight, against the tangents, is their product with
        # the Jacobian matrix
        recorded = [(g, t) for g, t in pairs if g.requires_grad]
        if not recorded:
            return ops.find("tt", "zeros_like")(tensor.detach())
        keep = any(t.requires_grad for t in (*level.tangents, *level.duals) if not t.is_leaf)
        (product,) = grad(
            [g for g, _ in recorded],
            [weight],
            [t for _, t in recorded],
            create_graph=keep,
            retain_graph=True,
            allow_unused=True,
        )
    if product is None:
        return ops.find("tt", "zeros_like")(tensor.detach())
    return product


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> Any:
    """Returns (primal, tangent) of a tensor. tangent is None if there is none."""
    instance(Tensor, tensor, "unpack_dual", "tensor")
    if not levels:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor, levels[-1])
    return UnpackedDualTensor(tensor.detach() if tangent is not None else tensor, tangent)
