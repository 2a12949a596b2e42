"""Captured graphs, the basis of fx, onnx and graph files."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, cast
from typing import Any, Callable, Sequence

from ._convert import pointers
from ._lib import Handle, call, filled, finalizer, lib, local, quick, result
from ._positions import Positions
from ._structs import CONSTANTS, struct
from ._tensor import Tensor, tensor_result
from ._tree import without_tensors
from ._types import contiguous_format
from .autograd import no_grad
from .errors import UnimplementedError

NONE, TENSOR, TENSORS, SCALAR, INT, FLOAT, BOOL, INTS, STR = range(9)  # tags of arguments
DEVICE = 10


class PlanHandle(Handle):
    """Owns a tt_plan."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_plan_release)


class Plan:
    """A copy of a graph that is ready to run, in memory of its own."""

    def __init__(self, graph: GraphHandle) -> None:
        info = graph.info()
        self._handle = result(PlanHandle, "tt_plan_new", graph.copy(), None)
        self._inputs = [self._slot(False, i) for i in range(info.n_inputs)]
        self._outputs = [self._slot(True, i) for i in range(info.n_outputs)]

    def _slot(self, output: bool, i: int) -> Tensor:
        """Returns the plan's tensor for an input or an output."""
        return tensor_result("tt_plan_slot", self._handle, c_int32(output), c_int64(i))

    def run(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Runs the graph without gradients. Returns new tensors.

        Raises ValueError unless tensors have the number, shapes and dtypes of the inputs.
        """
        if len(tensors) != len(self._inputs):
            raise ValueError(
                f"run: there are {len(tensors)} tensors, the graph has {len(self._inputs)}"
            )
        for i, (x, slot) in enumerate(zip(tensors, self._inputs)):
            if x.shape != slot.shape or x.dtype != slot.dtype:
                raise ValueError(
                    f"run: tensor {i} is {x.dtype} {tuple(x.shape)}, the graph was captured with "
                    f"{slot.dtype} {tuple(slot.shape)}"
                )
        with no_grad():
            for x, slot in zip(tensors, self._inputs):
                slot.copy_(x)
            call("tt_plan_run", self._handle)
            return [slot.clone() for slot in self._outputs]


def described(kind: str, name: str, *args: Any) -> Any:
    """Returns the struct that a C function fills in."""
    description = struct(kind)()
    call(name, *args, byref(description))
    return description


def int32s(address: int | None, n: int) -> list[int]:
    """Returns a C array as a list."""
    return cast(address, POINTER(c_int32))[:n] if address and n else []


class GraphHandle(Handle):
    """Owns a tt_graph; users have it as tt.fx.captured.Graph. Edits keep the numbers of values, but
    not those of nodes."""

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

    def copy(self) -> GraphHandle:
        return result(GraphHandle, "tt_graph_copy", self)

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

    def optimized(self) -> GraphHandle:
        return result(GraphHandle, "tt_graph_optimize", self, None)

    def folded(self) -> GraphHandle:
        """Returns a copy in which what follows from constants alone is computed."""
        opts = struct("tt_graph_optimize_opts")(
            set=1, passes=sum(CONSTANTS[f"TT_PASS_{name}"] for name in ("DCE", "CSE", "FOLD"))
        )
        return result(GraphHandle, "tt_graph_optimize", self, byref(opts))

    def save(self, path: Any) -> None:
        call("tt_graph_save", self, os.fsencode(path))

    def export_onnx(
        self, path: Any, others: Sequence[GraphHandle] = (), dims: Sequence[str] = ()
    ) -> None:
        """Writes an ONNX model. others: the computation for other sizes of the dimensions dims."""
        if not others:
            call("tt_graph_export_onnx", self, os.fsencode(path))
            return
        names = (c_char_p * len(dims))(*[dim.encode() for dim in dims])
        handles = (GraphHandle * len(others))(*others)
        lengths = c_int64(len(others)), c_int64(len(dims))
        where = os.fsencode(path)
        call("tt_graph_export_onnx_dims", self, handles, lengths[0], names, lengths[1], where)

    def resized(self, other: GraphHandle, size: int) -> GraphHandle:
        """Returns the computation for another size of the dimension in which other differs."""
        return result(GraphHandle, "tt_graph_resize", self, other, c_int64(size))

    def export_c(self, folder: Any, name: str, blob: bool = False) -> None:
        opts = struct("tt_graph_export_c_opts")(set=1, blob=blob)
        call("tt_graph_export_c_with", self, os.fsencode(folder), name.encode(), byref(opts))

    def quantized(
        self, samples: Sequence[Tensor], histogram: bool = False, per_row: bool = False
    ) -> GraphHandle:
        opts = struct("tt_graph_quantize_opts")(set=3, histogram=histogram, per_row=per_row)
        n = c_int64(len(samples))
        return result(GraphHandle, "tt_graph_quantize", self, pointers(samples), n, byref(opts))

    def text(self) -> str:
        """Returns a line for each operator."""
        return filled(c_char, "tt_graph_print", self, cap=4096).decode()

    def dot(self) -> str:
        """Returns the graph in Graphviz's DOT language."""
        return filled(c_char, "tt_graph_dot", self, cap=4096).decode()


def load(path: Any) -> GraphHandle:
    """Reads a graph from a file and verifies it."""
    return result(GraphHandle, "tt_graph_load", os.fsencode(path))


exporting = 0  # how many functions are being captured


def apart(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Returns the tensors, with copies of those that share memory with an earlier one or whose
    elements share an address, so that each can be written."""
    seen: set[int] = set()
    found = []
    for x in tensors:
        memory = x.untyped_storage().data_ptr()
        expanded = any(n > 1 and step == 0 for n, step in zip(x.shape, x.stride()))
        shares = expanded or memory in seen
        found.append(x.clone(memory_format=contiguous_format) if shares else x)
        seen.add(memory)
    return found


def captured(function: Callable[..., Any], inputs: Sequence[Tensor]) -> tuple[GraphHandle, Any]:
    """Calls a function without gradients while its operators are recorded.

    Returns the graph and the result with places instead of tensors. The graph's outputs are these
    tensors in order. An input that shares memory with an earlier one is copied, so that each is an
    input of the graph.
    """
    global exporting
    outs: list[Tensor] = []
    with no_grad():
        inputs = apart(inputs)
        call("tt_capture_begin", pointers(inputs), c_int64(len(inputs)), None)
        exporting += 1
        try:
            with Positions(as_tensor=True) as positions:
                structure = without_tensors(function(*inputs), outs)
                positions.sync()
            if positions.failure:
                raise UnimplementedError(
                    f"{positions.failure}: index by an int, or write by x[i] = value"
                )
        except BaseException:
            lib.tt_capture_drop(local.ctx)
            raise
        finally:
            exporting -= 1
        handle = result(GraphHandle, "tt_capture_end", pointers(outs), c_int64(len(outs)))
    return handle, structure
