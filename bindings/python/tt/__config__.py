"""How tt was built, with the API of torch.__config__."""
from __future__ import annotations

from ._handles import build_info, get_num_threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Returns a text about the build."""
    return str(build_info())


def parallel_info() -> str:
    """Returns a text about threads."""
    return f"tt threads: {get_num_threads()}"


def __dir__() -> list[str]:
    return __all__
