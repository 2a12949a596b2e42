"""torch.export: captures a call of a module or a function as a graph of operators, which can be
printed, saved, and run without Python.

A graph accepts only the shapes and dtypes of its example arguments.
"""
from __future__ import annotations

from ._graph import GraphHandle, Plan, captured
from ._graph import load as load_graph
from ._tensor import Tensor
from ._tree import Place, without_tensors
from .errors import UnimplementedError
from .fx import Graph, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["ExportedProgram", "Graph", "export", "load", "save"]


class ExportedProgram:
    """A captured call. graph: its operators."""

    def __init__(self, handle: GraphHandle, arguments: Any = None, results: Any = None) -> None:
        self.graph = Graph(handle)
        self._arguments, self._results = arguments, results
        self._plan: Plan | None = None

    def __str__(self) -> str:
        return f"ExportedProgram:\n{self.graph}"

    def _tensors_of(self, args: Any, kwargs: Any) -> list[Tensor]:
        """Returns the tensors of the arguments of run, in order."""
        tensors: list[Tensor] = []
        structure = without_tensors((args, kwargs), tensors)
        if self._arguments is not None:
            wanted = repr_of(self._arguments)
            if repr_of(structure) != wanted:
                raise ValueError(f"run: the arguments are not those of the capture, {wanted}")
        return tensors

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph. Tensors must have the shapes and dtypes of the captured ones."""
        tensors = self._tensors_of(args, kwargs)
        if self._plan is None:
            self._plan = Plan(self.graph.handle)
        return result_of(self._results, self._plan.run(tensors))

    def module(self) -> Callable[..., Any]:
        """Returns a callable with the signature of the module."""
        return self.run

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """Returns self: a graph consists of primitive operators."""
        return self


def repr_of(structure: Any) -> str:
    """Returns a text that is equal for equal structures of arguments."""
    if isinstance(structure, (list, tuple)):
        return f"{type(structure).__name__}({', '.join(map(repr_of, structure))})"
    if isinstance(structure, dict):
        parts = (f"{k!r}: {repr_of(v)}" for k, v in structure.items())
        return f"{{{', '.join(parts)}}}"
    return "Tensor" if isinstance(structure, Place) else repr(structure)


def export(
    mod: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
) -> ExportedProgram:
    """Calls a module or a function without gradients, and returns the operators of the call.

    Parameters are constants of the graph, as are Python numbers and the branches taken.
    dynamic_shapes raises UnimplementedError; strict and preserve_module_call_signature are ignored.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"export: args must be a tuple, not {type(args).__name__}")
    if dynamic_shapes is not None:
        raise UnimplementedError("export: dynamic_shapes: a graph is for the shapes of args")
    tensors: list[Tensor] = []
    arguments = without_tensors((args, kwargs or {}), tensors)
    handle, results = captured(lambda *_: mod(*args, **(kwargs or {})), tensors)
    return ExportedProgram(handle.optimized(), arguments, results)


def save(ep: ExportedProgram, f: Any) -> None:
    """Writes the graph and its constants to a file (.ttg)."""
    ep.graph.handle.save(f)


def load(f: Any) -> ExportedProgram:
    """Loads a program from a file of save(). Its run() takes the tensors of the captured call in
    order, and returns a tensor or a tuple."""
    return ExportedProgram(load_graph(f))


def __dir__() -> list[str]:
    return __all__
