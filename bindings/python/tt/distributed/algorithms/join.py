"""The names of torch.distributed.algorithms.join: ranks must have equally many inputs."""
from __future__ import annotations

from ..._absent import absent_class

__all__ = ["Join", "Joinable"]
WHY = "all ranks must have equally many batches, as drop_last of DistributedSampler makes them"
Join = absent_class("distributed.algorithms.Join", WHY)
Joinable = absent_class("distributed.algorithms.Joinable", WHY)


def __dir__() -> list[str]:
    return __all__
