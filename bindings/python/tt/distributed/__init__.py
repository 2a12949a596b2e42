"""Groups of processes over Gloo, MPI or NCCL, with the names of torch.distributed.

All ranks must make the same calls in the same order. If a rank fails, does not answer within the
timeout or makes another call, the other ranks raise a DistributedError that names it.
"""
from __future__ import annotations

import os
from datetime import timedelta
from enum import Enum

from .. import _ops as ops
from .._convert import instance, wrong_kind
from .._create import tensor as tensor_of
from .._tensor import Tensor
from .._types import BY_NAME
from .._types import device as device_class
from ..errors import DistributedError, InvalidArgumentError, ShapeError, UnimplementedError
from ._bucket import GradBucket
from ._group import (
    DEFAULT_TIMEOUT,
    Done,
    ProcessGroup,
    Work,
    bytes_of,
    connect,
    is_there,
    tensor_of_bytes,
)
from ._store import FileStore, HashStore, PrefixStore, Store, TCPStore, rendezvous_of
from .rendezvous import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DistError = DistBackendError = DistNetworkError = DistStoreError = DistributedError
default_pg_timeout = DEFAULT_TIMEOUT

__all__ = [
    "Backend",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]


BACKENDS = ("gloo", "mpi", "mpich", "nccl")
SUBMODULES = (
    "algorithms autograd checkpoint device_mesh distributed_c10d fsdp nn optim rpc tensor".split()
)


def __getattr__(name: str) -> Any:
    """Imports submodules on first use."""
    from importlib import import_module

    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(import_module(f"{__name__}.device_mesh"), name)
    if name not in SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


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


class Backend(str):
    """The name of a backend."""

    UNDEFINED, GLOO, NCCL, MPI = "undefined", "gloo", "nccl", "mpi"


class group:
    """WORLD: the default group, which init_process_group creates; None before."""

    WORLD: ProcessGroup | None = None


class GroupMember(group):
    """NON_GROUP_MEMBER: the result of new_group in processes that are not in the group."""

    NON_GROUP_MEMBER: Any = object()


World = group  # for functions that have a parameter `group`


# ---- groups ----


def is_available() -> bool:
    """Returns True."""
    return True


def is_gloo_available() -> bool:
    """Returns whether libtt_gloo can be loaded."""
    return is_there("gloo")


def is_mpi_available() -> bool:
    """Returns whether libtt_mpi or libtt_mpich can be loaded."""
    return is_there("mpi") or is_there("mpich")


def is_nccl_available() -> bool:
    """Returns whether NCCL can be loaded, from pip's package or the loader's path."""
    return is_there("nccl")


def is_torchelastic_launched() -> bool:
    """Returns whether tt.distributed.run started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_initialized() -> bool:
    """Returns whether init_process_group has been called."""
    return group.WORLD is not None


def mpi_of_launcher() -> str:
    """Returns the backend library for the MPI that started this process: "mpich" or "mpi"."""
    by_mpich = "PMI_SIZE" in os.environ and "OMPI_COMM_WORLD_SIZE" not in os.environ
    return "mpich" if by_mpich and is_there("mpich") else "mpi"


def backend_of(given: str | None) -> str:
    """Returns the backend library of a backend argument."""
    name = backend_named(given)
    return mpi_of_launcher() if name == "mpi" else name


def backend_named(given: str | None) -> str:
    """Returns the backend of a backend argument. "cpu:gloo,cuda:nccl" is nccl, which supports both
    devices."""
    if not given:
        started_by_mpi = "OMPI_COMM_WORLD_SIZE" in os.environ or "PMI_SIZE" in os.environ
        return "mpi" if started_by_mpi and "MASTER_ADDR" not in os.environ else "gloo"
    parts = [part.rpartition(":") for part in given.lower().split(",")]
    if any(name == "nccl" for _, _, name in parts):
        return "nccl"
    for device, _, name in parts:
        if device in ("", "cpu"):
            return name
    return given.lower()


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
    """Connects this process with the others of the default group.

    backend: "gloo" or "mpi" for tensors on the CPU, or "nccl" for tensors on CUDA devices and, by
        gloo, on the CPU; by default mpi under mpirun without MASTER_ADDR, else gloo.
    init_method: the rendezvous: "env://" (the default, which uses MASTER_ADDR and MASTER_PORT),
        "tcp://host:port" or "file:///path". MPI needs none.
    timeout: the limit of every wait for another process; by default 30 minutes.
    world_size, rank: by default WORLD_SIZE and RANK of the environment, else 1 and 0.
    store: a store for the rendezvous, with world_size and rank, instead of init_method.
    group_name, pg_options, device_id are accepted and ignored.
    """
    if is_initialized():
        raise InvalidArgumentError("init_process_group: the default process group exists already")
    name = backend_of(backend)
    if store is not None and init_method is not None:
        raise InvalidArgumentError("init_process_group: takes either store or init_method")
    if store is None or name in ("mpi", "mpich"):
        size, place, rendezvous = place_of(name, init_method, world_size, rank)
    else:
        size, place, rendezvous = rendezvous_of(store, rank, world_size)
    if size == 1 and name not in BACKENDS and not is_there(name):  # C opens no library for it
        raise InvalidArgumentError(
            f"init_process_group: backend is {backend!r}: must be gloo, mpi, nccl, or the NAME of a "
            "library libtt_NAME"
        )
    handle = connect(name, place, size, rendezvous, timeout)
    group.WORLD = ProcessGroup(handle, backend or name)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Destroys a group, by default the default group."""
    process_group = checked(group, "destroy_process_group")
    process_group.handle = None  # type: ignore[assignment]
    if process_group is World.WORLD:
        World.WORLD = None


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Creates a group of some ranks of the default group, by default all. All ranks must call it;
    those that are not in the group get GroupMember.NON_GROUP_MEMBER. Timeout and backend are those
    of the default group.

    use_local_synchronization: must be False. The other arguments are ignored.
    """
    if use_local_synchronization:
        raise UnimplementedError(
            "new_group: use_local_synchronization is True: all ranks must call new_group"
        )
    world = checked(None, "new_group")
    chosen = list(range(world.size())) if ranks is None else [int(r) for r in ranks]
    if len(set(chosen)) != len(chosen) or any(not 0 <= r < world.size() for r in chosen):
        raise InvalidArgumentError(
            f"new_group: ranks are {chosen}: must be different and below {world.size()}"
        )
    me = world.rank()
    inside = me in chosen
    handle = world.split(0 if inside else -1, chosen.index(me) if inside else 0)
    if handle is None:
        return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(handle, world.backend, chosen)


def checked(given: Any, op: str) -> ProcessGroup:
    """Returns the group of a call, by default the default group. Raises ValueError if this process
    is not in it."""
    process_group = group.WORLD if given is None else given
    if process_group is None:
        raise ValueError(f"{op}: call init_process_group first")
    if process_group is GroupMember.NON_GROUP_MEMBER:
        raise ValueError(f"{op}: this process is not in the group")
    if instance(ProcessGroup, process_group, op, "group").handle is None:
        raise ValueError(f"{op}: the group has been destroyed")
    return process_group


def place_in(g: ProcessGroup, rank: int | None, op: str, arg: str) -> int:
    """Converts a rank of the default group to a rank of g. op and arg are for the error."""
    if rank not in g.ranks:
        raise InvalidArgumentError(f"{op}: {arg} is {rank}: must be a rank of the group")
    return g.ranks.index(rank)


def root_of(g: ProcessGroup, rank: int | None, inside: int | None, op: str, arg: str) -> int:
    """Returns a rank of g that is given as a rank of the default group, or, as `inside`, of g."""
    if inside is None:
        return place_in(g, 0 if rank is None else rank, op, arg)
    if rank is not None:
        raise ValueError(f"{op}: takes either {arg} or group_{arg}")
    if not 0 <= inside < g.size():
        raise InvalidArgumentError(f"{op}: group_{arg} is {inside}: must be below {g.size()}")
    return inside


def get_rank(group: Any = None) -> int:
    """Returns the rank of this process; -1 if it is not in the group."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return -1
    return checked(group, "get_rank").rank()


def get_world_size(group: Any = None) -> int:
    """Returns the number of processes; -1 if this one is not in the group."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return -1
    return checked(group, "get_world_size").size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Returns the name of the backend, as passed to init_process_group."""
    return checked(group, "get_backend").backend


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Returns the members of a group as ranks of the default group."""
    return list(checked(group, "get_process_group_ranks").ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Converts a rank of the default group to a rank of the group."""
    return place_in(checked(group, "get_group_rank"), global_rank, "get_group_rank", "global_rank")


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Converts a rank of the group to a rank of the default group."""
    g = checked(group, "get_global_rank")
    return g.ranks[root_of(g, None, group_rank, "get_global_rank", "rank")]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Returns LOCAL_RANK of the environment, by default fallback_rank."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "get_node_local_rank: the environment has no LOCAL_RANK: start the program by "
            "tt.distributed.run, or give fallback_rank"
        )
    return int(fallback_rank)


def is_backend_available(backend: str) -> bool:
    """Returns whether the library of a backend can be loaded."""
    available = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    name = backend.lower()
    return available[name]() if name in available else is_there(name)


def get_default_backend_for_device(device: Any) -> str:
    """Returns the backend for tensors on a device: "gloo" or "nccl"."""
    return "nccl" if device_class(device).type == "cuda" else "gloo"


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divides the ranks into groups of group_size neighbours, by default of one machine. Returns
    (the group of this rank, all groups, of which others are NON_GROUP_MEMBER)."""
    world = checked(None, "new_subgroups")
    size = group_size or int(os.environ.get("LOCAL_WORLD_SIZE", world.size()))
    if size < 1 or world.size() % size:
        raise ValueError(
            f"new_subgroups: group_size is {size}: must divide the world size, {world.size()}"
        )
    parts = [list(range(i, i + size)) for i in range(0, world.size(), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Creates a group of each list of ranks, which must be disjoint. Returns (the group of this
    rank or None, all groups, of which others are NON_GROUP_MEMBER)."""
    known = [rank for part in ranks_per_subgroup_list for rank in part]
    if not known or len(set(known)) != len(known):
        raise ValueError(f"new_subgroups_by_enumeration: the ranks are {known}: must be different")
    groups = [new_group(part, timeout, backend) for part in ranks_per_subgroup_list]
    mine = [g for g in groups if g is not GroupMember.NON_GROUP_MEMBER]
    return mine[0] if mine else None, groups


# ---- collective operators ----


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


# ---- transfers ----


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Starts sending tensor to rank dst, or to rank group_dst of the group."""
    g = checked(group, "isend")
    root = root_of(g, dst, group_dst, "isend", "dst")
    return g.start("tt_group_send", (tensor,), root, tag, wait=False)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Starts receiving tensor from rank src, or from rank group_src of the group; None: from the
    first rank that sends with this tag, which source_rank() of the work returns."""
    g = checked(group, "irecv")
    anyone = src is None and group_src is None
    place = -1 if anyone else root_of(g, src, group_src, "irecv", "src")
    return g.start("tt_group_recv", (tensor,), place, tag, wait=False)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends tensor to rank dst, or to rank group_dst of the group."""
    g = checked(group, "send")
    root = root_of(g, dst, group_dst, "send", "dst")
    g.start("tt_group_send", (tensor,), root, tag, wait=True)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives tensor from rank src, or from rank group_src of the group; None: from the first rank
    that sends with this tag. Returns the rank that has sent."""
    work: Any = irecv(tensor, src, group, tag, group_src)
    work.wait()
    return work.source_rank()


class P2POp:
    """A transfer of batch_isend_irecv: op is isend or irecv."""

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError("P2POp: op must be tt.distributed.isend or irecv")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Starts several transfers and returns their works."""
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]


# ---- pickled Python objects ----


def packed(obj: Any) -> Tensor:
    """Returns the bytes of the pickled object."""
    import pickle

    return tensor_of_bytes(pickle.dumps(obj))


def unpacked(t: Tensor, n: int) -> Any:
    """Unpickles an object from the first n bytes."""
    import pickle

    return pickle.loads(bytes_of(t[:n]))


def shared_length(t: Tensor, group: Any) -> tuple[list[int], Tensor]:
    """Returns the lengths of t on all ranks, and t padded to the largest."""
    g = checked(group, "all_gather_object")
    lengths = parts_of(g, tensor_of([0]))
    g.start("tt_group_all_gather", (tensor_of([len(t)]), lengths), wait=True)
    sizes = lengths.flatten().tolist()
    padded = ops.zeros(max(sizes), dtype=t.dtype)
    padded[: len(t)] = t
    return sizes, padded


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Writes the objects of all ranks to object_list. They are pickled: trust all ranks."""
    g = checked(group, "all_gather_object")
    check_length(object_list, g, "all_gather_object", "object_list")
    sizes, padded = shared_length(packed(obj), group)
    whole = parts_of(g, padded)
    g.start("tt_group_all_gather", (padded, whole), wait=True)
    for i, n in enumerate(sizes):
        object_list[i] = unpacked(whole[i], n)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Writes the objects of all ranks to object_gather_list on rank dst. They are pickled."""
    g = checked(group, "gather_object")
    objects = [None] * g.size()
    all_gather_object(objects, obj, group)
    if g.rank() == root_of(g, dst, group_dst, "gather_object", "dst"):
        check_length(object_gather_list, g, "gather_object", "object_gather_list")
        object_gather_list[:] = objects  # type: ignore[index]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replaces the objects on all ranks by those of rank src. They are pickled."""
    g = checked(group, "broadcast_object_list")
    root = root_of(g, src, group_src, "broadcast_object_list", "src")
    mine = packed(list(object_list))
    length = tensor_of([len(mine)])
    g.start("tt_group_broadcast", (length,), root, wait=True)
    if g.rank() != root:
        mine = ops.empty(int(length), dtype=mine.dtype)
    g.start("tt_group_broadcast", (mine,), root, wait=True)
    object_list[:] = unpacked(mine, len(mine))


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Writes item r of the input list of rank src to the output list of rank r. It is pickled."""
    g = checked(group, "scatter_object_list")
    whole = list(scatter_object_input_list or [None] * g.size())
    check_length(whole, g, "scatter_object_list", "scatter_object_input_list")
    broadcast_object_list(whole, src, group, group_src=group_src)
    scatter_object_output_list[0] = whole[g.rank()]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
) -> None:
    """Sends objects to rank dst. They are pickled."""
    data = packed(list(object_list))
    send(tensor_of([len(data)], device="cpu"), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> int:
    """Replaces objects by those that rank src sends; None: the first rank that sends. They are
    unpickled: trust it. Returns the rank that has sent."""
    length = tensor_of([0], device="cpu")
    sender = recv(length, src, group, group_src=group_src)
    data = ops.empty(int(length), dtype=BY_NAME["uint8"], device="cpu")
    recv(data, sender, group)
    object_list[:] = unpacked(data, len(data))
    return sender


def __dir__() -> list[str]:
    return __all__
