"""torch.onnx: export writes an ONNX model of opset 20 from a captured graph, load reads one."""
from __future__ import annotations

import enum
import importlib
import os
import re
import tempfile
import warnings
from ctypes import byref
from typing import Any, Sequence

import tt

from .._absent import absent_class
from .._dynamic import Dim, Dynamic, corners, dimensions, from_shapes, joined, names_of
from .._graph import GraphHandle, captured
from .._lib import result
from .._onnx_names import renamed
from .._structs import struct
from .._tensor import Tensor
from .._tree import with_tensors, without_tensors
from ..errors import UnimplementedError

__all__ = [
    "ExportOptions",
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "load",
]
ExportOptions = absent_class("onnx.ExportOptions", "export takes its options as arguments")
exporting = False
OPSET = 20
OWN_NAME = re.compile(r"t\d+")  # of values within a model


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers of dtypes."""

    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL = range(10)
    FLOAT16, DOUBLE, UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(10, 17)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Does nothing: export writes the operators that it knows."""


class OnnxExporterError(RuntimeError):
    """PyTorch's error of exports. tt raises UnimplementedError and ValueError."""


class TrainingMode(enum.IntEnum):
    """The mode in which export calls a module."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """PyTorch's choices for operators without a counterpart. ONNX is the only one that tt has."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class ONNXProgram:
    """A model that export has made. exported_program: the captured call."""

    def __init__(
        self,
        graphs: list[GraphHandle],
        dims: list[str],
        names: dict[str, str],
        program: tt.export.ExportedProgram,
    ) -> None:
        self._graphs, self._dims, self._names = graphs, dims, names
        self._changed = {old: name for old, name in names.items() if old != name}
        self.exported_program = program

    def _write(self, path: Any) -> None:
        graph, *others = self._graphs
        graph.export_onnx(path, others, self._dims)

    def _bytes(self) -> bytes:
        """Returns the model as a file has it."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            self._write(path)
            with open(path, "rb") as file:
                model = file.read()
        return renamed(model, self._changed) if self._changed else model

    def save(
        self,
        destination: Any,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Writes the model to a path or a file that is open. Weights are in the same file."""
        if not include_initializers or keep_initializers_as_inputs:
            raise UnimplementedError("ONNXProgram.save: weights are constants of the model")
        if hasattr(destination, "write"):
            destination.write(self._bytes())
            return
        path = os.fsdecode(destination)
        if not self._changed:
            self._write(path)
            return
        model = self._bytes()
        handle, new = tempfile.mkstemp(dir=os.path.dirname(path) or ".")
        with open(handle, "wb") as file:
            file.write(model)
        os.replace(new, path)

    @property
    def model_proto(self) -> Any:
        """The model as an onnx.ModelProto. Requires the package onnx."""
        return importlib.import_module("onnx").load_model_from_string(self._bytes())

    def optimize(self) -> None:
        """Does nothing: the model is optimized."""

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Computes the outputs with tt. Returns them as a list."""
        tensors: list[Tensor] = []
        without_tensors(self.exported_program.run(*args, **kwargs), tensors)
        return tensors

    def __repr__(self) -> str:
        return f"ONNXProgram({list(self._names.values())})"


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Any = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: Any = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Any = None,
    training: Any = TrainingMode.EVAL,
    operator_export_type: Any = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Any = None,
    export_modules_as_functions: Any = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Writes a module, a function or an exported program as an ONNX model of opset 20 to f, a path
    or an open file. Returns an ONNXProgram if dynamo is True, which can be saved without f.

    args: a tensor, or a tuple of tensors, structures of tensors and other values, which become
    constants; a dict at its end is kwargs. Inputs without a name in input_names are called as the
    arguments, outputs out0, out1, …; if dynamo is False, inputs are called in0, in1, …. The model
    has the shapes of args, but up to three dimensions may have any size: dynamic_shapes is that of
    tt.export.export, dynamic_axes a dict such as {"x": {0: "batch", 1: "length"}}. A module is
    called in the mode that training says. Weights are constants in the same file. Options of
    PyTorch's that are not named here have no effect.
    Raises UnimplementedError for operators without a counterpart.
    """
    if opset_version is not None and opset_version > OPSET:
        raise ValueError(f"onnx.export: opset_version is {opset_version}: at most {OPSET}")
    for given, name in (
        (custom_translation_table, "custom_translation_table"),
        (keep_initializers_as_inputs, "keep_initializers_as_inputs"),
        (not export_params, "export_params=False"),
        (custom_opsets, "custom_opsets"),
        (export_modules_as_functions, "export_modules_as_functions"),
        (int(operator_export_type), "operator_export_type"),
    ):
        if given:
            raise UnimplementedError(f"onnx.export: {name}: a model has tt's operators and weights")
    if f is None and not dynamo:
        raise TypeError("onnx.export: f is missing: must be a path or a file")
    program = program_of(
        model,
        (args,) if isinstance(args, Tensor) else tuple(args),
        kwargs,
        dynamic_shapes,
        dynamic_axes or {},
        TrainingMode(int(training)),
        Names(input_names or (), output_names or (), dynamo),
    )
    if f is not None:
        program.save(f)
    return program if dynamo else None


class Names:
    """Names of inputs and outputs: those that the caller gives, in order, then others."""

    def __init__(self, inputs: Sequence[str], outputs: Sequence[str], dynamo: bool) -> None:
        self.inputs, self.outputs, self.dynamo = list(inputs), list(outputs), dynamo

    def of_inputs(self, model: Any, args: Any, kwargs: dict[str, Any], n: int) -> list[str]:
        """Returns the names of n inputs, the tensors of the arguments."""
        others = names_of(model, args, kwargs) if self.dynamo else []
        others = others if len(others) == n else [f"in{i}" for i in range(n)]
        return self.inputs + others[len(self.inputs) :]

    def pairs(self, inputs: list[str], n_inputs: int, n_outputs: int) -> dict[str, str]:
        """Returns the names of the model by those that C writes."""
        outputs = self.outputs + [f"out{i}" for i in range(len(self.outputs), n_outputs)]
        for kind, names, n in (("input", inputs, n_inputs), ("output", outputs, n_outputs)):
            if len(names) > n:
                raise ValueError(
                    f"onnx.export: {kind}_names has {len(names)} names: there are {n} {kind}s"
                )
        every = inputs + outputs
        for i, name in enumerate(every):
            if not name or OWN_NAME.fullmatch(name) or name in every[:i]:
                raise ValueError(
                    f"onnx.export: the name {name!r}: names must be different, not empty, and not "
                    "t with a number, which values within the model have"
                )
        written = [f"in{i}" for i in range(n_inputs)] + [f"out{i}" for i in range(n_outputs)]
        return dict(zip(written, every))


def program_of(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    shapes: Any,
    axes: Any,
    mode: TrainingMode,
    names: Names,
) -> ONNXProgram:
    """Captures the call. The other arguments are those of export."""
    from ..export import ExportedProgram

    if isinstance(model, ExportedProgram):
        handle = model.graph.handle
        info = handle.info()
        inputs = names.inputs + [f"in{i}" for i in range(len(names.inputs), info.n_inputs)]
        pairs = names.pairs(inputs, info.n_inputs, info.n_outputs)
        return ONNXProgram([handle], [], pairs, model)
    if kwargs is None and args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], args[-1]
    named = kwargs or {}
    tensors: list[Tensor] = []
    places = without_tensors((args, named), tensors)
    inputs = names.of_inputs(model, args, named, len(tensors))

    def function(*values: Tensor) -> Any:
        positional, by_name = with_tensors(places, values)
        return model(*positional, **by_name)

    if shapes is not None:
        dynamic = from_shapes(shapes, model, args, named, "onnx.export")
    else:
        dynamic = from_axes(axes, tensors, inputs, names.outputs)
    wanted = [tensors]
    if dynamic is not None:
        sizes = dynamic.sizes(tensors, "onnx.export")
        examples = dynamic.examples(sizes, "onnx.export")
        wanted = [dynamic.resized(tensors, each) for each in corners(examples)]
    with ExportMode(model, mode):
        calls = [captured(function, each) for each in wanted]
    graphs = [graph.optimized() for graph, _ in calls]
    pairs = names.pairs(inputs, len(tensors), graphs[0].info().n_outputs)
    program = ExportedProgram(graphs[0], places, calls[0][1])
    dims = [dim.__name__ for dim in dynamic.dims] if dynamic is not None else []
    if not dims:  # graphs of several sizes are compared call by call
        graphs = [graphs[0].folded()]
    return ONNXProgram(graphs, dims, pairs, program)


class ExportMode:
    """While a model is called: whether it trains, and is_in_onnx_export()."""

    def __init__(self, model: Any, mode: TrainingMode) -> None:
        self.model, self.training = model, getattr(model, "training", None)
        self.wanted = self.training if mode is TrainingMode.PRESERVE else bool(mode)

    def __enter__(self) -> None:
        global exporting
        exporting = True
        if self.training is not None and self.training != self.wanted:
            self.model.train(self.wanted)

    def __exit__(self, *error: Any) -> None:
        global exporting
        exporting = False
        if self.training is not None and self.training != self.wanted:
            self.model.train(self.training)


def from_axes(
    axes: Any, tensors: Sequence[Tensor], inputs: Sequence[str], outputs: Sequence[str]
) -> Dynamic | None:
    """Reads the argument dynamic_axes: by names of inputs; those of outputs follow."""
    found: list[dict[int, Dim]] = []
    for name, x in zip(inputs, tensors):
        spec = axes.get(name) or {}
        names = spec if isinstance(spec, dict) else dict.fromkeys(spec)
        dims = {d: Dim.AUTO if axis is None else Dim(axis) for d, axis in names.items()}
        found.append(dimensions(dims, x, "onnx.export"))
    for key in axes:
        if key not in inputs and key not in outputs and not re.fullmatch(r"out\d+", key):
            warnings.warn(
                f"onnx.export: dynamic_axes has {key!r}, which is no input or output: inputs are "
                f"{list(inputs)}",
                stacklevel=4,
            )
    return joined(found, tensors, "onnx.export")


def load(f: Any, dynamic: int = 1) -> tt.export.ExportedProgram:
    """Reads an ONNX model from a file. The program's run() takes the model's inputs in order, and
    returns a tensor or a tuple. tt's own: PyTorch has no such function.

    dynamic: the size of dimensions of inputs that have no number.
    """
    from ..export import ExportedProgram

    opts = struct("tt_graph_load_onnx_opts")(set=1, dynamic=dynamic)
    path = os.fsencode(f)
    return ExportedProgram(result(GraphHandle, "tt_graph_load_onnx", path, byref(opts)))


def is_in_onnx_export() -> bool:
    """Returns whether export is calling the model."""
    return exporting


def __dir__() -> list[str]:
    return __all__
