"""torch.jit. tt has no TorchScript: script, trace, load and save raise UnimplementedError.

Functions that only mark their argument for a compiler return it unchanged.
"""
from __future__ import annotations

import builtins
from contextlib import nullcontext

from ._absent import absent_class, absent_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
WHY = "tt has no TorchScript: call the function or the module itself"
FILES = "tt has no TorchScript: save and load state_dict() by tt.save and tt.load"
ScriptFunction = absent_class("jit.ScriptFunction", WHY)
ScriptModule = absent_class("jit.ScriptModule", WHY)
script = absent_function("jit.script", WHY)
script_method = absent_function("jit.script_method", WHY)
trace = absent_function("jit.trace", WHY)
trace_module = absent_function("jit.trace_module", WHY)
freeze = absent_function("jit.freeze", WHY)
optimize_for_inference = absent_function("jit.optimize_for_inference", WHY)
fork = absent_function("jit.fork", "tt has no TorchScript: use Python's threads")
wait = absent_function("jit.wait", "tt has no TorchScript: use Python's threads")
load = absent_function("jit.load", FILES)
save = absent_function("jit.save", FILES)


class Final:
    """Final[T] is T. It is a mark for TorchScript's compiler."""

    def __class_getitem__(cls, type: Any) -> Any:
        return type


def export(fn: Any) -> Any:
    """Returns fn."""
    return fn


unused = script_if_tracing = export


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Returns a function unchanged; without one, a decorator that does the same."""
    return drop if callable(drop) else export


def is_scripting() -> bool:
    """Returns False: functions run in Python."""
    return False


is_tracing = is_scripting


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns the_value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Calls Python's isinstance, for a class or a tuple of classes."""
    return builtins.isinstance(obj, target_type)


def fuser(name: str) -> AbstractContextManager[None]:
    """Returns a context manager that does nothing."""
    return nullcontext()


def optimized_execution(should_optimize: bool) -> AbstractContextManager[None]:
    """Returns a context manager that does nothing."""
    return nullcontext()


def __dir__() -> list[str]:
    return __all__
