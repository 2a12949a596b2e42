"""Collectives that return new tensors, with the names of torch.distributed's. They have finished
when they return."""
from __future__ import annotations

from typing import Any

from .. import _ops as ops
from .._absent import absent_class, absent_function
from .._tensor import Tensor
from . import ReduceOp, all_gather_into_tensor, checked
from . import all_reduce as all_reduce_
from . import all_to_all_single as all_to_all_single_

AsyncCollectiveTensor = absent_class(
    "distributed._functional_collectives.AsyncCollectiveTensor", "results are plain tensors"
)


def wait_tensor(tensor: Tensor) -> Tensor:
    """Returns tensor."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any = None, tag: str = "") -> Tensor:
    """Returns the reduction over the group: "sum", "avg", "min", "max" or "product"."""
    result = self.clone()
    all_reduce_(result, ReduceOp[reduceOp.upper()], group)
    return result


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any = None, tag: str = "") -> Tensor:
    """Returns the tensors of all ranks, concatenated along gather_dim."""
    size = checked(group, "all_gather_tensor").size()
    whole = ops.empty((size * self.shape[0], *self.shape[1:]), dtype=self.dtype, device=self.device)
    all_gather_into_tensor(whole, self.contiguous(), group)
    return whole if gather_dim == 0 else ops.cat(whole.chunk(size), gather_dim)


def all_to_all_single(
    self: Tensor, output_split_sizes: Any, input_split_sizes: Any, group: Any = None, tag: str = ""
) -> Tensor:
    """Sends a part of the first dimension to each rank, and returns what came from each."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    result = ops.empty((rows, *self.shape[1:]), dtype=self.dtype, device=self.device)
    all_to_all_single_(result, self.contiguous(), output_split_sizes, input_split_sizes, group)
    return result


all_to_all_single_autograd = absent_function(
    "distributed._functional_collectives.all_to_all_single_autograd",
    "use distributed.nn.functional.all_to_all_single, whose parts have one size",
)
