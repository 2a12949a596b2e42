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
from ..errors import DistributedError, InvalidArgumentError, ShapeError
from ._bucket import GradBucket
from ._group import Done, ProcessGroup, Work, bytes_of, connect, is_there, tensor_of_bytes
from .rendezvous import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DistError = DistBackendError = DistNetworkError = DistributedError

__all__ = [
    "Backend",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "GradBucket",
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
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
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]


BACKENDS = ("gloo", "mpi", "mpich", "nccl")
SUBMODULES = "algorithms checkpoint fsdp nn optim rpc".split()


def __getattr__(name: str) -> Any:
    """Imports submodules on first use."""
    if name not in SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

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
    store, group_name, pg_options, device_id are accepted and ignored.
    """
    if is_initialized():
        raise InvalidArgumentError("init_process_group: the default process group exists already")
    name = backend_of(backend)
    size, place, rendezvous = place_of(name, init_method, world_size, rank)
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
    ranks: list[int] | None = None, timeout: timedelta | None = None, *args: Any, **kwargs: Any
) -> Any:
    """Creates a group of some ranks of the default group, by default all. All ranks must call it;
    those that are not in the group get GroupMember.NON_GROUP_MEMBER. The timeout is that of the
    default group."""
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
    return checked(group, "get_global_rank").ranks[group_rank]


# ---- collective operators ----


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Replaces tensor on all ranks by the reduction (sum, mean, …) of the tensors of all ranks."""
    g = checked(group, "all_reduce")
    return g.start("tt_group_all_reduce", (tensor,), code_of(op, "all_reduce"), wait=not async_op)


def reduce(
    tensor: Tensor,
    dst: int = 0,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Replaces tensor on rank dst by the reduction of the tensors of all ranks."""
    g = checked(group, "reduce")
    root = place_in(g, dst, "reduce", "dst")
    return g.start("tt_group_reduce", (tensor,), code_of(op, "reduce"), root, wait=not async_op)


def broadcast(
    tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """Replaces tensor on all ranks by the tensor of rank src."""
    g = checked(group, "broadcast")
    root = place_in(g, src, "broadcast", "src")
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
    dst: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Writes the tensors of all ranks to the items of gather_list on rank dst."""
    g = checked(group, "gather")
    root = place_in(g, dst, "gather", "dst")
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
    src: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Writes item r of scatter_list on rank src to the tensor of rank r."""
    g = checked(group, "scatter")
    root = place_in(g, src, "scatter", "src")
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


def isend(tensor: Tensor, dst: int, group: Any = None, tag: int = 0) -> Work | None:
    """Starts sending tensor to rank dst."""
    g = checked(group, "isend")
    return g.start("tt_group_send", (tensor,), place_in(g, dst, "isend", "dst"), tag, wait=False)


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0) -> Work | None:
    """Starts receiving tensor from rank src; None: from the first rank that sends with this tag,
    which source_rank() of the work returns."""
    g = checked(group, "irecv")
    place = -1 if src is None else place_in(g, src, "irecv", "src")
    return g.start("tt_group_recv", (tensor,), place, tag, wait=False)


def send(tensor: Tensor, dst: int, group: Any = None, tag: int = 0) -> None:
    """Sends tensor to rank dst."""
    g = checked(group, "send")
    g.start("tt_group_send", (tensor,), place_in(g, dst, "send", "dst"), tag, wait=True)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0) -> int:
    """Receives tensor from rank src; None: from the first rank that sends with this tag. Returns
    the rank that has sent."""
    work: Any = irecv(tensor, src, group, tag)
    work.wait()
    return work.source_rank()


class P2POp:
    """A transfer of batch_isend_irecv: op is isend or irecv."""

    def __init__(self, op: Any, tensor: Tensor, peer: int, group: Any = None, tag: int = 0) -> None:
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Starts several transfers and returns their works."""
    return [p.op(p.tensor, p.peer, p.group, p.tag) for p in p2p_op_list]


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
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None
) -> None:
    """Writes the objects of all ranks to object_gather_list on rank dst. They are pickled."""
    g = checked(group, "gather_object")
    objects = [None] * g.size()
    all_gather_object(objects, obj, group)
    if g.rank() == place_in(g, dst, "gather_object", "dst"):
        check_length(object_gather_list, g, "gather_object", "object_gather_list")
        object_gather_list[:] = objects  # type: ignore[index]


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: Any = None, device: Any = None
) -> None:
    """Replaces the objects on all ranks by those of rank src. They are pickled."""
    g = checked(group, "broadcast_object_list")
    root = place_in(g, src, "broadcast_object_list", "src")
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
    src: int = 0,
    group: Any = None,
) -> None:
    """Writes item r of the input list of rank src to the output list of rank r. It is pickled."""
    g = checked(group, "scatter_object_list")
    whole = list(scatter_object_input_list or [None] * g.size())
    check_length(whole, g, "scatter_object_list", "scatter_object_input_list")
    broadcast_object_list(whole, src, group)
    scatter_object_output_list[0] = whole[g.rank()]


def __dir__() -> list[str]:
    return __all__
