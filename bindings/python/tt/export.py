"""torch.export: captures a call of a module or a function as a graph of operators, which can be
printed, saved, and run without Python.

A graph accepts only the shapes and dtypes of its example arguments.
"""
from __future__ import annotations

import os
from ctypes import c_char, c_int32, c_int64, create_string_buffer
from struct import Struct

from . import _convert as convert
from ._lib import Handle, call, fail, filled, finalizer, lib, local, quick, result
from ._tensor import Tensor, tensor_result
from ._tree import Place, with_tensors, without_tensors
from .autograd import no_grad
from .errors import UnimplementedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["ExportedProgram", "Graph", "export", "load", "save"]
INFO = Struct("qqqqqPP")  # tt_graph_info


class GraphHandle(Handle):
    """Owns a tt_graph."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_graph_release)


class PlanHandle(Handle):
    """Owns a tt_plan."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_plan_release)


class Graph:
    """Operators in execution order. str() has a line for each."""

    def __init__(self, handle: GraphHandle) -> None:
        self._handle = handle
        info = create_string_buffer(INFO.size)
        call("tt_graph_get_info", handle, info)
        self.num_nodes, _, _, self.num_inputs, self.num_outputs, _, _ = INFO.unpack(info.raw)

    def __str__(self) -> str:
        text: bytes = filled(c_char, "tt_graph_print", self._handle, cap=1 << 16)
        return text.decode()

    def dot(self) -> str:
        """Returns the graph in Graphviz's DOT language."""
        text: bytes = filled(c_char, "tt_graph_dot", self._handle, cap=1 << 16)
        return text.decode()

    def print_tabular(self) -> None:
        """Prints the graph."""
        print(self)


class ExportedProgram:
    """A captured call. graph: its operators."""

    def __init__(self, handle: GraphHandle, arguments: Any = None, results: Any = None) -> None:
        self.graph = Graph(handle)
        self._arguments, self._results = arguments, results
        self._plan: PlanHandle | None = None
        self._inputs: list[Tensor] = []
        self._outputs: list[Tensor] = []

    def __str__(self) -> str:
        return f"ExportedProgram:\n{self.graph}"

    def _lowered(self) -> PlanHandle:
        """Returns the plan of the graph, with its inputs and outputs in _inputs and _outputs."""
        if self._plan is None:
            plan = result(PlanHandle, "tt_plan_new", self.graph._handle, None)
            for output, slots, n in (
                (0, self._inputs, self.graph.num_inputs),
                (1, self._outputs, self.graph.num_outputs),
            ):
                for i in range(n):
                    slots.append(tensor_result("tt_plan_slot", plan, c_int32(output), c_int64(i)))
            self._plan = plan
        return self._plan

    def _tensors_of(self, args: Any, kwargs: Any) -> list[Tensor]:
        tensors: list[Tensor] = []
        structure = without_tensors((args, kwargs), tensors)
        if self._arguments is not None:
            wanted = repr_of(self._arguments)
            if repr_of(structure) != wanted:
                raise ValueError(f"run: the arguments are not those of the capture, {wanted}")
        if len(tensors) != self.graph.num_inputs:
            raise ValueError(
                f"run: there are {len(tensors)} tensors, the graph has {self.graph.num_inputs}"
            )
        return tensors

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph. Tensors must have the shapes and dtypes of the captured ones."""
        tensors = self._tensors_of(args, kwargs)
        plan = self._lowered()
        for i, (x, slot) in enumerate(zip(tensors, self._inputs)):
            if x.shape != slot.shape or x.dtype != slot.dtype:
                raise ValueError(
                    f"run: tensor {i} is {x.dtype} {tuple(x.shape)}, the graph was captured with "
                    f"{slot.dtype} {tuple(slot.shape)}"
                )
        with no_grad():
            for x, slot in zip(tensors, self._inputs):
                slot.copy_(x)
            if lib.tt_plan_run(local.ctx, plan):
                fail()
            outputs = [slot.clone() for slot in self._outputs]
        if self._results is not None:
            return with_tensors(self._results, outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

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
    outputs: list[Tensor] = []
    with no_grad():
        call("tt_capture_begin", convert.pointers(tensors), convert.length(tensors), None)
        try:
            results = without_tensors(mod(*args, **(kwargs or {})), outputs)
        except BaseException:
            call("tt_capture_drop")
            raise
        handle = result(
            GraphHandle, "tt_capture_end", convert.pointers(outputs), convert.length(outputs)
        )
    optimized = result(GraphHandle, "tt_graph_optimize", handle, None)
    return ExportedProgram(optimized, arguments, results)


def save(ep: ExportedProgram, f: Any) -> None:
    """Writes the graph and its constants to a file (.ttg)."""
    call("tt_graph_save", ep.graph._handle, os.fsencode(f))


def load(f: Any) -> ExportedProgram:
    """Loads a program from a file of save(). Its run() takes the tensors of the captured call in
    order, and returns a tensor or a tuple."""
    return ExportedProgram(result(GraphHandle, "tt_graph_load", os.fsencode(f)))
