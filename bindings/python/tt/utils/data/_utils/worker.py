"""What workers of a DataLoader know, under the name of PyTorch's module."""
from __future__ import annotations

from random import Random

from ..worker import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
_worker_info = None  # get_worker_info() knows it


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Returns four numbers of 32 bits for a worker's own generators."""
    draw = Random(base_seed * 2**32 + worker_id)
    return [draw.getrandbits(32) for _ in range(4)]
