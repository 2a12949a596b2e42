"""The default limit of every wait for another process."""
from __future__ import annotations

from ._group import DEFAULT_TIMEOUT as default_pg_timeout

__all__ = ["default_pg_timeout"]


def __dir__() -> list[str]:
    return __all__
