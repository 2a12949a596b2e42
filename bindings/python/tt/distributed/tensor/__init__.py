"""The names of torch.distributed.tensor: tt has no DTensor. Placements can be made, for programs
that describe how they would shard."""
from __future__ import annotations

from ..._absent import absent_class, absent_function
from ..device_mesh import DeviceMesh, init_device_mesh
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "init_device_mesh",
]
WHY = "tt has no DTensor; shard by FullyShardedDataParallel"
DTensor = absent_class("distributed.tensor.DTensor", WHY)
distribute_module = absent_function("distributed.tensor.distribute_module", WHY)
distribute_tensor = absent_function("distributed.tensor.distribute_tensor", WHY)


def __dir__() -> list[str]:
    return __all__
