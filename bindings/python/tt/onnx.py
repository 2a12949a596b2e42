"""torch.onnx: export writes an ONNX model of opset 20 from a captured graph, load reads one."""
from __future__ import annotations

import os
from ctypes import byref

from ._absent import absent_class
from ._graph import GraphHandle, captured
from ._layouts import struct
from ._lib import result
from ._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .export import ExportedProgram

__all__ = ["ExportOptions", "ONNXProgram", "export", "is_in_onnx_export", "load"]
WHY = "export writes the file itself"
ExportOptions = absent_class("onnx.ExportOptions", WHY)
ONNXProgram = absent_class("onnx.ONNXProgram", WHY)
exporting = False


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> None:
    """Writes a module or a function, called with args (a tensor or a tuple of tensors), to the file
    f as an ONNX model.

    The model has the shapes of args; its inputs are in0, in1, …, its outputs out0, out1, …. A
    module is exported in eval mode. Other accepted arguments, which have no effect, are
    opset_version up to 20, dynamo, verbose, do_constant_folding and export_params.
    Raises UnimplementedError for operators without a counterpart.
    """
    global exporting
    known = {"opset_version", "dynamo", "verbose", "do_constant_folding", "export_params"}
    if options.keys() - known:
        raise TypeError(f"onnx.export: unexpected arguments {sorted(options.keys() - known)}")
    if options.get("opset_version", 20) > 20:
        raise ValueError(f"onnx.export: opset_version is {options['opset_version']}: at most 20")
    if f is None:
        raise TypeError("onnx.export: f is missing: must be the path of a file")
    inputs = (args,) if isinstance(args, Tensor) else tuple(args)
    training = getattr(model, "training", False)
    if training:
        model.eval()
    exporting = True
    try:
        graph, _ = captured(model, inputs)
    finally:
        exporting = False
        if training:
            model.train()
    graph.optimized().export_onnx(f)


def load(f: Any, dynamic: int = 1) -> ExportedProgram:
    """Reads an ONNX model from a file. The program's run() takes the model's inputs in order, and
    returns a tensor or a tuple. tt's own: PyTorch has no such function.

    dynamic: the size of dimensions of inputs that have no number.
    """
    from .export import ExportedProgram

    opts = struct("tt_graph_load_onnx_opts")(set=1, dynamic=dynamic)
    path = os.fsencode(f)
    return ExportedProgram(result(GraphHandle, "tt_graph_load_onnx", path, byref(opts)))


def is_in_onnx_export() -> bool:
    """Returns whether export is calling the model."""
    return exporting


def __dir__() -> list[str]:
    return __all__
