"""torch.compile and torch.compiler's names. Graphs are not captured yet: a compiled function is the
function itself."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Returns model, a function or a module, as it is. Without it: a decorator that does so.

    The other arguments are accepted and change nothing.
    """
    if mode is not None and options is not None:
        raise RuntimeError("compile: give mode or options, not both")
    if model is None:
        return itself
    if not callable(model):
        raise RuntimeError(f"compile: model is a {type(model).__name__}: must be callable")
    return model


def itself(fn: Any) -> Any:
    """Returns fn."""
    return fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns fn as it is. Without it: a decorator that does so."""
    return itself if fn is None else fn


allow_in_graph = assume_constant_result = itself


def is_compiling() -> bool:
    """Returns False: functions run as they are."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Does nothing: nothing is compiled."""


cudagraph_mark_step_begin = reset


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """Returns []: tt has no compiler."""
    return []
