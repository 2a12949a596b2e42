"""Groups of processes over Gloo, MPI or NCCL, with the names of torch.distributed.

All ranks must make the same calls in the same order. If a rank fails, does not answer within the
timeout or makes another call, the other ranks raise a DistributedError that names it.
"""
from __future__ import annotations

from typing import Any

from ..errors import DistributedError
from ._bucket import GradBucket
from ._collectives import (
    ReduceOp,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from ._group import DEFAULT_TIMEOUT, ProcessGroup, Work
from ._groups import (
    Backend,
    GroupMember,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from ._groups import BACKENDS as BACKENDS
from ._groups import checked as checked
from ._groups import place_in as place_in
from ._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._store import FileStore, HashStore, PrefixStore, Store, TCPStore
from ._transfers import P2POp, batch_isend_irecv, irecv, isend, recv, send

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

SUBMODULES = (
    "algorithms autograd checkpoint device_mesh distributed_c10d elastic fsdp nn optim rpc "
    "tensor".split()
)


def __getattr__(name: str) -> Any:
    """Imports submodules on first use."""
    from importlib import import_module

    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(import_module(f"{__name__}.device_mesh"), name)
    if name not in SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return __all__
