"""Options of torch.distributed.fsdp. They can be made; FullyShardedDataParallel refuses those that
it cannot follow."""
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..._absent import absent_class, absent_function

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "StateDictConfig",
    "StateDictType",
    "fully_shard",
    "register_fsdp_forward_method",
]
WHY = "tt has no DTensor; wrap modules in FullyShardedDataParallel"
FSDPModule = absent_class("distributed.fsdp.FSDPModule", WHY)
fully_shard = absent_function("distributed.fsdp.fully_shard", WHY)
register_fsdp_forward_method = absent_function("distributed.fsdp.register_fsdp_forward_method", WHY)


class BackwardPrefetch(Enum):
    """When the next unit's parameters are gathered in backward. tt gathers each when it is
    needed."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(Enum):
    """Kinds of state dicts: full_state_dict() and sharded_state_dict()."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


class OptimStateKeyType(Enum):
    """The keys of an optimizer's state: names or numbers of parameters."""

    PARAM_NAME = 1
    PARAM_ID = 2


@dataclass
class CPUOffload:
    """offload_params: whether shards are on the CPU."""

    offload_params: bool = False


@dataclass(frozen=True)
class MixedPrecision:
    """The dtypes of parameters, of gradients in communication, and of buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, of gradients in communication, and of results."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards stay on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards are on the CPU. pin_memory: in page-locked memory."""

    pin_memory: bool = True


@dataclass
class StateDictConfig:
    """offload_to_cpu: whether the tensors of a state dict are on the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """rank0_only: whether the other ranks get no tensors."""

    rank0_only: bool = False


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Options of a state dict of shards."""


@dataclass
class OptimStateDictConfig:
    """offload_to_cpu: whether the tensors of an optimizer's state are on the CPU."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """rank0_only: whether the other ranks get no tensors."""

    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Options of the optimizer state of shards."""


def __dir__() -> list[str]:
    return __all__
