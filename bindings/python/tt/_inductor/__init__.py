"""Names of PyTorch's compiler that programs set. tt compiles with its own graphs."""
from __future__ import annotations

from typing import Any

from . import config as config


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """Returns an empty dict: modes of tt.compile have no options."""
    return {}


def list_options() -> list[str]:
    """Returns an empty list."""
    return []
