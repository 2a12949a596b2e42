"""The names of tt.distributed.fsdp, under PyTorch's name of the module that has them."""
from __future__ import annotations

from . import FullyShardedDataParallel as FullyShardedDataParallel
from . import ShardingStrategy as ShardingStrategy
from .api import *  # noqa: F403
