"""torch.onnx: export writes an ONNX model of opset 20 from a captured graph, load reads one."""
from __future__ import annotations

import os
from ctypes import byref

from ._absent import absent_class
from ._dynamic import Dim, dimensions, from_shapes, single
from ._graph import GraphHandle, captured
from ._layouts import struct
from ._lib import result
from ._tensor import Tensor
from ._tree import with_tensors, without_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._dynamic import Dynamic
    from .export import ExportedProgram

__all__ = ["ExportOptions", "ONNXProgram", "export", "is_in_onnx_export", "load"]
WHY = "export writes the file itself"
ExportOptions = absent_class("onnx.ExportOptions", WHY)
ONNXProgram = absent_class("onnx.ONNXProgram", WHY)
exporting = False


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> None:
    """Writes a module or a function, called with args (a tensor, or a tuple of tensors and of
    structures of tensors), to the file f as an ONNX model.

    The model has the shapes of args; its inputs are in0, in1, …, its outputs out0, out1, …. One
    dimension may have any size: dynamic_shapes is that of tt.export.export, dynamic_axes a dict
    such as {"in0": {0: "batch"}}, whose outputs are found and need not be named. A module is
    exported in eval mode. Other accepted arguments, which have no effect, are
    opset_version up to 20, dynamo, verbose, do_constant_folding and export_params.
    Raises UnimplementedError for operators without a counterpart.
    """
    global exporting
    shapes, axes = options.pop("dynamic_shapes", None), options.pop("dynamic_axes", None)
    known = {"opset_version", "dynamo", "verbose", "do_constant_folding", "export_params"}
    if options.keys() - known:
        raise TypeError(f"onnx.export: unexpected arguments {sorted(options.keys() - known)}")
    if options.get("opset_version", 20) > 20:
        raise ValueError(f"onnx.export: opset_version is {options['opset_version']}: at most 20")
    if f is None:
        raise TypeError("onnx.export: f is missing: must be the path of a file")
    tensors: list[Tensor] = []
    places = without_tensors((args,) if isinstance(args, Tensor) else tuple(args), tensors)

    def function(*values: Tensor) -> Any:
        return model(*with_tensors(places, values))

    inputs = tuple(tensors)
    dynamic = None
    if shapes is not None:
        dynamic = from_shapes(shapes, model, inputs, {}, "onnx.export")
    elif axes is not None:
        dynamic = from_axes(axes, inputs)
    training = getattr(model, "training", False)
    if training:
        model.eval()
    exporting = True
    try:
        if dynamic is not None:  # a size of 1 broadcasts, so none of the two is 1
            size = max(dynamic.size(inputs, "onnx.export"), 2)
            inputs = tuple(dynamic.resized(inputs, size))
            larger, _ = captured(function, dynamic.resized(inputs, size + 1))
        graph, _ = captured(function, inputs)
    finally:
        exporting = False
        if training:
            model.train()
    if dynamic is None:
        graph.optimized().export_onnx(f)
    else:
        graph.optimized().export_onnx(f, larger.optimized(), dynamic.dim.__name__)


def from_axes(axes: Any, inputs: Any) -> Dynamic | None:
    """Reads the argument dynamic_axes."""
    found: list[dict[int, Dim]] = []
    for i, x in enumerate(inputs):
        spec = axes.get(f"in{i}") or {}
        if not isinstance(spec, dict):
            spec = {d: "batch" for d in spec}
        found.append(dimensions({d: Dim(name) for d, name in spec.items()}, x, "onnx.export"))
    wrong = [k for k in axes if not k.startswith(("in", "out"))]
    if wrong:
        raise ValueError(f"onnx.export: dynamic_axes has {wrong}: names are in0, …, out0, …")
    return single(found, inputs, "onnx.export")


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
