"""torch.export: captures a call of a module or a function as a graph of operators, which can be
printed, saved, and run without Python.

A graph accepts only the shapes and dtypes of its example arguments, but for a dynamic dimension.
"""
from __future__ import annotations

from ._dynamic import Dim, Dynamic, from_shapes
from ._graph import GraphHandle, Plan, captured
from ._graph import load as load_graph
from ._tensor import Tensor
from ._tree import Place, with_tensors, without_tensors
from .errors import UnimplementedError
from .fx.captured import Graph, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["Dim", "ExportedProgram", "Graph", "dims", "export", "load", "save"]


class Sizes:
    """Graphs of one computation for the sizes of a dynamic dimension. Plans of the sizes that were
    used last are kept."""

    LIMIT = 16

    def __init__(self, dynamic: Dynamic, one: GraphHandle, other: GraphHandle) -> None:
        self._dynamic, self._one, self._other = dynamic, one, other
        self.plans: dict[int, Plan] = {}

    def graph(self, size: int) -> GraphHandle:
        """Returns the optimized graph for a size."""
        return self._one.resized(self._other, size).optimized()

    def plan(self, tensors: list[Tensor]) -> Plan:
        """Returns the plan for the size that the tensors have."""
        size = self._dynamic.size(tensors, "run")
        plan = self.plans.pop(size, None) or Plan(self.graph(size))
        while len(self.plans) >= self.LIMIT:
            del self.plans[next(iter(self.plans))]
        self.plans[size] = plan
        return plan


class ExportedProgram:
    """A captured call. graph: its operators."""

    def __init__(
        self,
        handle: GraphHandle,
        arguments: Any = None,
        results: Any = None,
        sizes: Sizes | None = None,
    ) -> None:
        self.graph = Graph(handle)
        self._arguments, self._results, self._sizes = arguments, results, sizes
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
        """Runs the graph. Tensors must have the shapes and dtypes of the captured ones, but for a
        dynamic dimension."""
        tensors = self._tensors_of(args, kwargs)
        if self._sizes is not None:
            return result_of(self._results, self._sizes.plan(tensors).run(tensors))
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
    dynamic_shapes: for each argument None or a dict {dimension: Dim}, in a dict by name or in
    order; all of them are one Dim. The call is then captured for three sizes of it, with repeated
    rows, and run() makes the graph for other sizes; numbers that differ between the two must grow
    evenly. save() writes the graph for the size of args. strict and preserve_module_call_signature
    are ignored.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"export: args must be a tuple, not {type(args).__name__}")
    tensors: list[Tensor] = []
    arguments = without_tensors((args, kwargs or {}), tensors)
    dynamic = None
    if dynamic_shapes is not None:
        dynamic = from_shapes(dynamic_shapes, mod, args, kwargs or {}, "export")
    if dynamic is None:
        handle, results = captured(lambda *_: mod(*args, **(kwargs or {})), tensors)
        return ExportedProgram(handle.optimized(), arguments, results)

    def call_with(*inputs: Tensor) -> Any:
        positional, named = with_tensors(arguments, list(inputs))
        return mod(*positional, **named)

    # a size of 1 broadcasts, so none of them is 1; the third is a check
    size = dynamic.size(tensors, "export")
    least = max(size, 2)
    one, results = captured(call_with, dynamic.resized(tensors, least))
    other, third = (
        captured(call_with, dynamic.resized(tensors, least + more))[0] for more in (1, 3)
    )
    if one.resized(other, least + 3).text() != third.text():
        raise UnimplementedError(
            f"export: a size does not grow evenly with {dynamic.dim}: the graphs for {least}, "
            f"{least + 1} and {least + 3} do not follow from each other"
        )
    sizes = Sizes(dynamic, one, other)
    return ExportedProgram(sizes.graph(size), arguments, results, sizes)


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Returns a Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def save(ep: ExportedProgram, f: Any) -> None:
    """Writes the graph and its constants to a file (.ttg)."""
    ep.graph.handle.save(f)


def load(f: Any) -> ExportedProgram:
    """Loads a program from a file of save(). Its run() takes the tensors of the captured call in
    order, and returns a tensor or a tuple."""
    return ExportedProgram(load_graph(f))


def __dir__() -> list[str]:
    return __all__
