"""The names of tt.distributed, under PyTorch's name of the module that has them."""
from __future__ import annotations

from typing import Any

from . import *  # noqa: F403
from . import BACKENDS as BACKENDS
from . import Backend as Backend
from . import GroupMember as GroupMember
from . import ProcessGroup, checked
from . import get_global_rank as _get_global_rank

_pg_map: dict[Any, Any] = {}  # groups know their backends themselves


def _get_default_group() -> ProcessGroup:
    """Returns the default group. Raises ValueError before init_process_group."""
    return checked(None, "_get_default_group")


def _rank_not_in_group(group: Any) -> bool:
    """Returns whether this process is not in the group."""
    return group is GroupMember.NON_GROUP_MEMBER


def is_xccl_available() -> bool:
    """Returns False: tt supports no Intel devices."""
    return False
