"""Captured graphs, the basis of fx, onnx and graph files."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_char, c_int32, c_int64, cast

from ._convert import pointers
from ._layouts import struct
from ._lib import Handle, call, filled, finalizer, lib, local, quick, result
from ._tensor import Tensor, tensor_result
from ._tree import without_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

NONE, TENSOR, TENSORS, SCALAR, INT, FLOAT, BOOL, INTS, STR = range(9)  # tags of arguments
DEVICE = 10


class Plan(Handle):
    """A graph that is ready to run."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_plan_release)

    def slot(self, output: bool, i: int) -> Tensor:
        """Returns the plan's tensor for an input or an output."""
        return tensor_result("tt_plan_slot", self, c_int32(output), c_int64(i))

    def run(self) -> None:
        """Computes the outputs from the inputs."""
        call("tt_plan_run", self)


def described(kind: str, name: str, *args: Any) -> Any:
    """Returns the struct that a C function fills in."""
    description = struct(kind)()
    call(name, *args, byref(description))
    return description


def int32s(address: int | None, n: int) -> list[int]:
    """Returns a C array as a list."""
    return cast(address, POINTER(c_int32))[:n] if address and n else []


class Graph(Handle):
    """Owns a tt_graph. Edits keep the numbers of values, but not those of nodes."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_graph_release)

    def info(self) -> Any:
        return described("tt_graph_info", "tt_graph_get_info", self)

    def node(self, i: int) -> Any:
        return described("tt_graph_node", "tt_graph_get_node", self, c_int64(i))

    def arg(self, node: int, i: int) -> Any:
        return described("tt_graph_arg", "tt_graph_get_arg", self, c_int64(node), c_int64(i))

    def value(self, i: int) -> Any:  # type: ignore[override]
        return described("tt_graph_value", "tt_graph_get_value", self, c_int64(i))

    def storage(self, i: int) -> Any:
        return described("tt_graph_storage", "tt_graph_get_storage", self, c_int64(i))

    def copy(self) -> Graph:
        return result(Graph, "tt_graph_copy", self)

    def users(self, value: int) -> list[int]:
        return list(filled(c_int64, "tt_graph_users", self, c_int32(value)))

    def insert(self, before: int, op: Any, args: Any) -> list[int]:
        values = (struct("tt_graph_arg") * max(len(args), 1))(*args)
        where = c_int64(before), op, values, c_int64(len(args))
        return list(filled(c_int32, "tt_graph_insert", self, *where))

    def replace_uses(self, value: int, new: int) -> None:
        call("tt_graph_replace_uses", self, c_int32(value), c_int32(new))

    def remove(self, node: int) -> None:
        call("tt_graph_remove", self, c_int64(node))

    def set_outputs(self, values: Sequence[int]) -> None:
        call("tt_graph_set_outputs", self, (c_int32 * len(values))(*values), c_int64(len(values)))

    def optimized(self) -> Graph:
        return result(Graph, "tt_graph_optimize", self, None)

    def plan(self) -> Plan:
        return result(Plan, "tt_plan_new", self, None)

    def save(self, path: Any) -> None:
        call("tt_graph_save", self, os.fsencode(path))

    def export_onnx(self, path: Any) -> None:
        call("tt_graph_export_onnx", self, os.fsencode(path))

    def export_c(self, folder: Any, name: str, blob: bool = False) -> None:
        opts = struct("tt_graph_export_c_opts")(set=1, blob=blob)
        call("tt_graph_export_c_with", self, os.fsencode(folder), name.encode(), byref(opts))

    def quantized(
        self, samples: Sequence[Tensor], histogram: bool = False, per_row: bool = False
    ) -> Graph:
        opts = struct("tt_graph_quantize_opts")(set=3, histogram=histogram, per_row=per_row)
        n = c_int64(len(samples))
        return result(Graph, "tt_graph_quantize", self, pointers(samples), n, byref(opts))

    def text(self) -> str:
        return filled(c_char, "tt_graph_print", self, cap=4096).decode()


def load(path: Any) -> Graph:
    """Reads a graph from a file and verifies it."""
    return result(Graph, "tt_graph_load", os.fsencode(path))


def captured(function: Callable[..., Any], inputs: Sequence[Tensor]) -> tuple[Graph, Any]:
    """Calls a function while its operators are recorded. Returns the graph and the result with
    places instead of tensors. The graph's outputs are these tensors in order."""
    call("tt_capture_begin", pointers(inputs), c_int64(len(inputs)), None)
    outs: list[Tensor] = []
    try:
        structure = without_tensors(function(*inputs), outs)
    except BaseException:
        lib.tt_capture_drop(local.ctx)
        raise
    return result(Graph, "tt_capture_end", pointers(outs), c_int64(len(outs))), structure
