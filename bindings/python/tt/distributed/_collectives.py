"""Collective operators, which all ranks of a group call in the same order."""
from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any

from .. import _ops as ops
from .._convert import instance, wrong_kind
from .._tensor import Tensor
from ..errors import InvalidArgumentError, ShapeError
from ._group import Done, ProcessGroup, Work
from ._groups import checked, root_of


class ReduceOp(Enum):
    """The reduction of all_reduce and the other reducing collectives."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]

CODES = {"SUM": 1, "AVG": 2, "MIN": 3, "MAX": 4, "PRODUCT": 5, "BAND": 6, "BOR": 7, "BXOR": 8}


def code_of(op: ReduceOp, function: str) -> int:
    """Returns C's number of a reduction."""
    return CODES[instance(ReduceOp, op, function, "op").name]


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Replaces tensor on all ranks by the reduction (sum, mean, …) of the tensors of all ranks."""
    g = checked(group, "all_reduce")
    return g.start("tt_group_all_reduce", (tensor,), code_of(op, "all_reduce"), wait=not async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replaces tensor on rank dst by the reduction of the tensors of all ranks."""
    g = checked(group, "reduce")
    root = root_of(g, dst, group_dst, "reduce", "dst")
    return g.start("tt_group_reduce", (tensor,), code_of(op, "reduce"), root, wait=not async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replaces tensor on all ranks by the tensor of rank src."""
    g = checked(group, "broadcast")
    root = root_of(g, src, group_src, "broadcast", "src")
    return g.start("tt_group_broadcast", (tensor,), root, wait=not async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes the input tensors of all ranks to output_tensor, concatenated in rank order."""
    g = checked(group, "all_gather_into_tensor")
    return g.start("tt_group_all_gather", (input_tensor, output_tensor), wait=not async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all ranks to the items of tensor_list."""
    g = checked(group, "all_gather")
    check_length(tensor_list, g, "all_gather", "tensor_list")
    check_shapes(tensor_list, tensor, "all_gather", "tensor_list")
    whole = parts_of(g, tensor)
    return g.start(
        "tt_group_all_gather",
        (tensor, whole),
        wait=not async_op,
        after=lambda: copy_parts(whole, tensor_list),
    )


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Writes the tensors of all ranks to the items of gather_list on rank dst."""
    g = checked(group, "gather")
    root = root_of(g, dst, group_dst, "gather", "dst")
    if g.rank() != root:
        return g.start("tt_group_gather", (tensor, None), root, wait=not async_op)
    items = check_length(gather_list, g, "gather", "gather_list")
    check_shapes(items, tensor, "gather", "gather_list")
    whole = parts_of(g, tensor)
    return g.start(
        "tt_group_gather",
        (tensor, whole),
        root,
        wait=not async_op,
        after=lambda: copy_parts(whole, items),
    )


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Writes item r of scatter_list on rank src to the tensor of rank r."""
    g = checked(group, "scatter")
    root = root_of(g, src, group_src, "scatter", "src")
    whole = None
    if g.rank() == root:
        whole = ops.stack(check_length(scatter_list, g, "scatter", "scatter_list"))
    return g.start("tt_group_scatter", (whole, tensor), root, wait=not async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces input over all ranks and writes part r of the result to output on rank r."""
    g = checked(group, "reduce_scatter_tensor")
    return g.start(
        "tt_group_reduce_scatter",
        (input, output),
        code_of(op, "reduce_scatter_tensor"),
        wait=not async_op,
    )


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces the items of input_list over all ranks and writes item r to output on rank r."""
    g = checked(group, "reduce_scatter")
    whole = ops.stack(check_length(input_list, g, "reduce_scatter", "input_list"))
    return g.start(
        "tt_group_reduce_scatter", (whole, output), code_of(op, "reduce_scatter"), wait=not async_op
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Sends part r of input to rank r and receives part r of output from rank r.

    output_split_sizes, input_split_sizes: the number of rows of each part, by default equal parts.
    """
    g = checked(group, "all_to_all_single")
    if output_split_sizes or input_split_sizes:
        n = g.size()
        rows = output_split_sizes or [len(output) // n] * n
        outputs = output.split(rows)
        inputs = input.split(input_split_sizes or [len(input) // n] * n)
        return all_to_all(list(outputs), list(inputs), group, async_op)
    return g.start("tt_group_all_to_all", (input, output), wait=not async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Sends item r of input_tensor_list to rank r and receives item r of output_tensor_list from
    rank r."""
    g = checked(group, "all_to_all")
    outputs = check_length(output_tensor_list, g, "all_to_all", "output_tensor_list")
    inputs = check_length(input_tensor_list, g, "all_to_all", "input_tensor_list")
    me, n = g.rank(), g.size()
    outputs[me].copy_(inputs[me])
    started = []
    for step in range(1, n):
        to, source = (me + step) % n, (me - step) % n
        started.append(g.start("tt_group_send", (inputs[to],), to, 0, wait=False))
        started.append(g.start("tt_group_recv", (outputs[source],), source, 0, wait=False))
    for work in started:
        work.wait()  # type: ignore[union-attr]
    return Done() if async_op else None


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits until all ranks have called barrier."""
    return checked(group, "barrier").start("tt_group_barrier", (), wait=not async_op)


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Same as barrier. The error names the missing rank; the timeout is that of the group."""
    checked(group, "monitored_barrier").start("tt_group_barrier", (), wait=True)


def check_length(items: Any, g: ProcessGroup, op: str, arg: str) -> list[Tensor]:
    """Returns items as a list. Raises InvalidArgumentError unless it has one item per rank."""
    if not isinstance(items, (list, tuple, type(None))):
        raise wrong_kind(op, arg, "list", items)
    tensors = [] if items is None else list(items)
    if len(tensors) != g.size():
        raise InvalidArgumentError(
            f"{op}: {arg} has {len(tensors)} items: must have {g.size()}, the world size"
        )
    return tensors


def check_shapes(items: list[Tensor], tensor: Tensor, op: str, arg: str) -> None:
    """Raises ShapeError unless the items have the shape of tensor."""
    for i, item in enumerate(items):
        if item.shape != tensor.shape:
            raise ShapeError(
                f"{op}: {arg}[{i}] is {list(item.shape)}, tensor is {list(tensor.shape)}: "
                "must be equal"
            )


def parts_of(g: ProcessGroup, tensor: Tensor) -> Tensor:
    """Returns an uninitialized tensor with room for the tensors of all ranks."""
    return ops.empty((g.size(), *tensor.shape), dtype=tensor.dtype, device=tensor.device)


def copy_parts(whole: Tensor, items: list[Tensor]) -> None:
    """Copies row r of whole to item r."""
    from ..autograd import no_grad

    with no_grad():
        for item, part in zip(items, whole):
            item.copy_(part)
