"""Collective operators with gradients, with the names of torch.distributed.nn.functional.

The gradient of a collective is a collective: all ranks must run backward through it, in the same
order.
"""
from __future__ import annotations

from typing import Any

from ... import _ops as ops
from ..._tensor import Tensor
from ...autograd import Function
from .. import ReduceOp, all_gather_into_tensor, checked, place_in
from .. import all_reduce as plain_all_reduce
from .. import all_to_all_single as plain_all_to_all
from .. import broadcast as plain_broadcast
from .. import reduce as plain_reduce
from .. import reduce_scatter_tensor

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all_single",
    "broadcast",
    "copy_to_all",
    "reduce_scatter",
]


class AllReduce(Function):
    """The sum over the ranks. Its gradient is the sum of the gradients of all ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, op: ReduceOp, group: Any) -> Tensor:
        ctx.op, ctx.group = op, group
        whole = x.contiguous().clone()
        plain_all_reduce(whole, op, group)
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return AllReduce.apply(grad, ctx.op, ctx.group), None, None


class CopyToAll(Function):
    """The identity, for a tensor that all ranks have. Its gradient is summed over the ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return AllReduce.apply(grad, ReduceOp.SUM, ctx.group), None


class AllGather(Function):
    """The tensors of all ranks along a new first dimension."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        whole = ops.empty(
            (checked(group, "all_gather").size(), *x.shape), dtype=x.dtype, device=x.device
        )
        all_gather_into_tensor(whole, x.contiguous(), group)
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return ReduceScatter.apply(grad, ctx.group), None


class ReduceScatter(Function):
    """The sum over the ranks, of which rank r gets part r along the first dimension."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        part = ops.empty(x.shape[1:], dtype=x.dtype, device=x.device)
        reduce_scatter_tensor(part, x.contiguous(), ReduceOp.SUM, group)
        return part

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return AllGather.apply(grad, ctx.group), None


class AllToAll(Function):
    """Sends part r of x to rank r."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        out = ops.empty(x.shape, dtype=x.dtype, device=x.device)
        plain_all_to_all(out, x.contiguous(), group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return AllToAll.apply(grad, ctx.group), None


class Broadcast(Function):
    """The tensor of one rank. Its gradient there is the sum of the gradients of all ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, src: int, group: Any) -> Tensor:
        ctx.src, ctx.group = src, group
        out = x.contiguous().clone()
        plain_broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        g = checked(ctx.group, "broadcast")
        whole = grad.contiguous().clone()
        plain_reduce(whole, ctx.src, ReduceOp.SUM, ctx.group)
        if g.rank() != place_in(g, ctx.src, "broadcast", "src"):
            whole.zero_()
        return whole, None, None


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Returns the sum or the mean of the tensors of all ranks."""
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(f"all_reduce: op is {op.name}: only SUM and AVG have a gradient")
    return AllReduce.apply(tensor, op, group)


def copy_to_all(tensor: Tensor, group: Any = None) -> Tensor:
    """Returns a tensor that is equal on all ranks. Its gradient is summed over the ranks."""
    return CopyToAll.apply(tensor, group)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Returns the tensors of all ranks."""
    return tuple(AllGather.apply(tensor, group).unbind(0))


def reduce_scatter(input_list: list[Tensor], group: Any = None) -> Tensor:
    """Returns the sum over the ranks of item r of input_list, on rank r."""
    return ReduceScatter.apply(ops.stack(list(input_list)), group)


def all_to_all_single(tensor: Tensor, group: Any = None) -> Tensor:
    """Sends part r of tensor to rank r. Returns the parts received from all ranks."""
    return AllToAll.apply(tensor, group)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Returns the tensor of rank src."""
    return Broadcast.apply(tensor, src, group)
