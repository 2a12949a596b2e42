"""Groups of processes: the default group, groups of some of its ranks, and who is in them."""
from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from .._convert import instance
from .._types import device as device_class
from ..errors import InvalidArgumentError, UnimplementedError
from ._group import ProcessGroup, connect, is_there
from ._store import rendezvous_of
from .rendezvous import place_of

BACKENDS = ("gloo", "mpi", "mpich", "nccl")


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
