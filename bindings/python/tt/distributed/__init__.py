"""torch.distributed's names for one process: a group of world size 1.

Collective operators are what they are with one member. A larger group raises UnimplementedError.
"""
from __future__ import annotations

import os
from datetime import timedelta
from enum import Enum

from .._tensor import Tensor
from ..errors import InvalidArgumentError, UnimplementedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = [
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]


class ReduceOp(Enum):
    """How all_reduce and the like combine tensors."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class ProcessGroup:
    """A group whose only member is this process."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def rank(self) -> int:
        return 0

    def size(self) -> int:
        return 1

    def name(self) -> str:
        return self.backend


class group:
    """WORLD: the group of init_process_group, or None."""

    WORLD: ProcessGroup | None = None


class Work:
    """What a collective operator with async_op=True returns: it is complete."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def is_available() -> bool:
    """Returns True: groups of one process can be made."""
    return True


def is_nccl_available() -> bool:
    """Returns False: so far there are groups of one process only."""
    return False


is_gloo_available = is_mpi_available = is_torchelastic_launched = is_nccl_available


def is_initialized() -> bool:
    """Returns whether init_process_group has been called."""
    return group.WORLD is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the group of this process alone.

    world_size, rank: by default WORLD_SIZE and RANK of the environment, else 1 and 0. A world size
    above 1 raises UnimplementedError. The other arguments are accepted and ignored.
    """
    if is_initialized():
        raise InvalidArgumentError("init_process_group: the default process group exists already")
    size = world_size if world_size >= 0 else int(os.environ.get("WORLD_SIZE", "1"))
    place = rank if rank >= 0 else int(os.environ.get("RANK", "0"))
    if size != 1:
        raise UnimplementedError(
            f"init_process_group: world_size is {size}: tt has groups of 1 process only"
        )
    if place != 0:
        raise InvalidArgumentError(
            f"init_process_group: rank is {place}: must be below world_size, 1"
        )
    group.WORLD = ProcessGroup(backend or "gloo")


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group; None: the default one."""
    world = globals()["group"]
    if group is None or group is world.WORLD:
        checked(None, "destroy_process_group")
        world.WORLD = None


def new_group(ranks: list[int] | None = None, *args: Any, **kwargs: Any) -> ProcessGroup:
    """Returns another group of this process."""
    world = checked(None, "new_group")
    if ranks not in (None, [0]):
        raise InvalidArgumentError(f"new_group: ranks are {ranks}: the only rank is 0")
    return ProcessGroup(world.backend)


def checked(given: ProcessGroup | None, op: str, *ranks: int | None) -> ProcessGroup:
    """Returns the group of a call, by default the whole world. All ranks must be 0 or None."""
    found = given or group.WORLD
    if found is None:
        raise ValueError(f"{op}: call init_process_group first")
    for rank in ranks:
        if rank not in (None, 0):
            raise InvalidArgumentError(f"{op}: rank is {rank}: the group's only rank is 0")
    return found


def get_rank(group: ProcessGroup | None = None) -> int:
    """Returns 0. Raises ValueError without a group."""
    return checked(group, "get_rank").rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Returns 1. Raises ValueError without a group."""
    return checked(group, "get_world_size").size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Returns the name that init_process_group was given."""
    return checked(group, "get_backend").backend


# ---- collective operators ----


def all_reduce(
    tensor: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Leaves tensor as it is: the sum, mean, product, … of one tensor."""
    checked(group, "all_reduce")
    return Work() if async_op else None


def reduce(
    tensor: Tensor,
    dst: int = 0,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Leaves tensor as it is."""
    checked(group, "reduce", dst)
    return Work() if async_op else None


def broadcast(
    tensor: Tensor, src: int = 0, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Leaves tensor as it is."""
    checked(group, "broadcast", src)
    return Work() if async_op else None


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copies tensor into the only item of tensor_list."""
    checked(group, "all_gather")
    only(tensor_list, "all_gather", "tensor_list").copy_(tensor)
    return Work() if async_op else None


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copies input_tensor into output_tensor."""
    checked(group, "all_gather_into_tensor")
    output_tensor.view_as(input_tensor).copy_(input_tensor)
    return Work() if async_op else None


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copies tensor into the only item of gather_list."""
    checked(group, "gather", dst)
    only(gather_list, "gather", "gather_list").copy_(tensor)
    return Work() if async_op else None


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copies the only item of scatter_list into tensor."""
    checked(group, "scatter", src)
    tensor.copy_(only(scatter_list, "scatter", "scatter_list"))
    return Work() if async_op else None


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copies the only item of input_list into output."""
    checked(group, "reduce_scatter")
    output.copy_(only(input_list, "reduce_scatter", "input_list"))
    return Work() if async_op else None


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Copies input into output."""
    checked(group, "reduce_scatter_tensor")
    output.copy_(input.view_as(output))
    return Work() if async_op else None


def only(items: Any, op: str, arg: str) -> Any:
    """Returns the item of a list of one."""
    if items is None or len(items) != 1:
        n = 0 if items is None else len(items)
        raise InvalidArgumentError(f"{op}: {arg} has {n} items: must have 1, the world size")
    return items[0]


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Puts obj into object_list, which has one item."""
    checked(group, "all_gather_object")
    only(object_list, "all_gather_object", "object_list")
    object_list[0] = obj


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: ProcessGroup | None = None, device: Any = None
) -> None:
    """Leaves object_list as it is."""
    checked(group, "broadcast_object_list", src)


def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None
) -> Work | None:
    """Returns at once."""
    checked(group, "barrier")
    return Work() if async_op else None


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> None:
    """Raises InvalidArgumentError: there is no other process."""
    raise InvalidArgumentError(f"send: dst is {dst}: the group has no other process")


def recv(
    tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0
) -> int:
    """Raises InvalidArgumentError: there is no other process."""
    raise InvalidArgumentError(f"recv: src is {src}: the group has no other process")
