"""Names of torch._dynamo, for programs that mark functions for PyTorch's compiler."""
from __future__ import annotations

from typing import Any

from ..compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from . import config, eval_frame
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "reset",
]
disallow_in_graph = allow_in_graph


def mark_dynamic(t: Any, index: Any, **kwargs: Any) -> None:
    """Does nothing: tt.compile takes the argument dynamic."""


def graph_break(msg: str = "") -> None:
    """Does nothing: a function is recorded whole, or runs in Python."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Does nothing: records read tensors where they are."""


mark_static = maybe_mark_dynamic = mark_dynamic


def __dir__() -> list[str]:
    return __all__
