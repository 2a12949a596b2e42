"""The former place of fully_shard and what belongs to it."""
from __future__ import annotations

from ..fsdp import CPUOffloadPolicy as CPUOffloadPolicy
from ..fsdp import FSDPModule as FSDPModule
from ..fsdp import MixedPrecisionPolicy as MixedPrecisionPolicy
from ..fsdp import OffloadPolicy as OffloadPolicy
from ..fsdp import fully_shard as fully_shard
