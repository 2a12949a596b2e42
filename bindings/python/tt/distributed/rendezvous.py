"""The rendezvous: init_method, rank and world size, from arguments or the environment."""
from __future__ import annotations

import os

from ..errors import InvalidArgumentError

# Variables of the launchers: torchrun and tt.distributed.run, Open MPI, MPICH.
SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def number(given: int, names: tuple[str, ...], default: int) -> int:
    """Returns given or, if it is negative, the first environment variable of names that is set."""
    if given >= 0:
        return given
    for name in names:
        if name in os.environ:
            return int(os.environ[name])
    return default


def place_of(
    backend: str, init_method: str | None, world_size: int, rank: int
) -> tuple[int, int, str]:
    """Returns the world size, the rank and the address of the rendezvous."""
    method = init_method or "env://"
    if backend in ("mpi", "mpich"):
        return world_size, rank, ""
    size, place = number(world_size, SIZES, 1), number(rank, RANKS, 0)
    if size < 1 or place >= size:
        raise InvalidArgumentError(
            f"init_process_group: rank is {place}, world_size {size}: rank must be below it"
        )
    if not method.startswith(("env://", "tcp://", "file://")):
        raise InvalidArgumentError(
            f"init_process_group: init_method is {method!r}: must begin with env://, tcp:// or "
            "file://"
        )
    if size == 1:
        return size, place, ""
    if method.startswith("file://"):
        return size, place, method.split("?")[0] + ".rendezvous"
    if method.startswith("tcp://"):
        return size, place, method.split("?")[0]
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise InvalidArgumentError(
            f"init_process_group: the environment has no {' and no '.join(missing)}, which env:// "
            f"needs for world_size {size}"
        )
    return size, place, f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
