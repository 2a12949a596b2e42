"""torch.export: captures a call of a module or a function as a graph of operators, which can be
printed, saved, and run without Python.

A graph accepts only the shapes and dtypes of its example arguments, but for a dynamic dimension.
"""
from __future__ import annotations

import json
import os
import tempfile
import zipfile
from typing import Any, Callable, Iterator, Sequence

from ._dynamic import Dim, Dynamic, corners, from_shapes, names_of, resized
from ._graph import GraphHandle, Plan, captured
from ._graph import load as load_graph
from ._signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from ._tensor import Tensor
from ._tree import Place, with_tensors, without_tensors
from .errors import UnimplementedError
from .fx.captured import Graph, result_of

__all__ = [
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "Graph",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "TensorArgument",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]
GRAPH, PROGRAM, STATE, EXTRA = "graph.ttg", "program.json", "state.safetensors", "extra/"
OTHER = "graph{}.header"  # of a graph for other sizes of dynamic dimensions


class Sizes:
    """Graphs of one computation for the sizes of dynamic dimensions. Plans of the sizes that were
    used last are kept."""

    LIMIT = 16

    def __init__(
        self, dynamic: Dynamic, graphs: list[GraphHandle], example: Sequence[int] = ()
    ) -> None:
        self._dynamic, self._graphs, self.example = dynamic, graphs, list(example)
        self.plans: dict[tuple[int, ...], Plan] = {}

    @property
    def dims(self) -> list[Dim]:
        return self._dynamic.dims

    def described(self) -> Any:
        """Returns what but the graphs a file has of it, for JSON."""
        return {
            "dims": [[dim.__name__, dim.min, dim.max] for dim in self.dims],
            "places": [list(place.items()) for place in self._dynamic.places],
            "example": self.example,
        }

    def write(self, archive: zipfile.ZipFile, folder: str) -> None:
        """Writes the graphs: the first one as a file .ttg, the headers of the others, which have
        the same constants."""
        constants = b""
        for i, graph in enumerate(self._graphs):
            path = os.path.join(folder, GRAPH)
            graph.save(path)
            header, content = parts_of(path)
            if i == 0:
                archive.write(path, GRAPH)
                constants = content
            elif content == constants:
                archive.writestr(OTHER.format(i), header)
            else:
                raise UnimplementedError("save: the graphs of other sizes have other constants")

    @classmethod
    def read(cls, archive: zipfile.ZipFile, folder: str, described: Any) -> Sizes:
        path = archive.extract(GRAPH, folder)
        graphs, (_, constants) = [load_graph(path)], parts_of(path)
        dims = [Dim(name, min=low, max=high) for name, low, high in described["dims"]]
        for i in range(1, 1 << len(dims)):
            header = archive.read(OTHER.format(i))
            with open(path, "wb") as file:
                file.write(len(header).to_bytes(8, "little") + header + constants)
            graphs.append(load_graph(path))
        dynamic = Dynamic(dims, [dict(place) for place in described["places"]])
        return cls(dynamic, graphs, described["example"])

    def graph(self, sizes: Sequence[int]) -> GraphHandle:
        """Returns the optimized graph for the sizes."""
        return resized(self._graphs, sizes).optimized()

    def plan(self, tensors: list[Tensor]) -> Plan:
        """Returns the plan for the sizes that the tensors have."""
        sizes = self._dynamic.sizes(tensors, "run")
        plan = self.plans.pop(sizes, None) or Plan(self.graph(sizes))
        while len(self.plans) >= self.LIMIT:
            del self.plans[next(iter(self.plans))]
        self.plans[sizes] = plan
        return plan


def parts_of(path: str) -> tuple[bytes, bytes]:
    """Returns the header of a safetensors file and what is behind it."""
    with open(path, "rb") as file:
        header = file.read(int.from_bytes(file.read(8), "little"))
        return header, file.read()


class State:
    """The parameters and buffers of the module of a program, and the names of the tensors
    among the arguments."""

    def __init__(self, parameters: Any = (), buffers: Any = (), inputs: Sequence[str] = ()) -> None:
        self.parameters: dict[str, Any] = dict(parameters)
        self.buffers: dict[str, Any] = dict(buffers)
        self.inputs = list(inputs)


class ExportedProgram:
    """A captured call. graph: its operators. example_inputs: args and kwargs of the call."""

    dialect = "TRAINING"
    example_inputs: Any = None

    def __init__(
        self,
        handle: GraphHandle,
        arguments: Any = None,
        results: Any = None,
        sizes: Sizes | None = None,
        state: State | None = None,
    ) -> None:
        self.graph = Graph(handle)
        self._state = state or State()
        self._module: Any = None
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

    def module(self) -> Any:
        """Returns a module that runs the graph, with the parameters and buffers of the captured
        one. Its results have no gradients."""
        if self._module is None:
            self._module = module_of(self)
        return self._module

    @property
    def graph_module(self) -> Any:
        """The module of module(), which has the attribute graph."""
        return self.module()

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """The names of parameters, buffers, inputs and outputs."""
        state, outputs = self._state, [node.name for node in self.graph.outputs]
        return ExportGraphSignature(
            list(state.parameters), list(state.buffers), state.inputs, outputs
        )

    @property
    def state_dict(self) -> dict[str, Any]:
        """The parameters and the buffers."""
        return {**self._state.parameters, **self._state.buffers}

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        yield from self._state.parameters.items()

    def parameters(self) -> Iterator[Any]:
        yield from self._state.parameters.values()

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        yield from self._state.buffers.items()

    def buffers(self) -> Iterator[Any]:
        yield from self._state.buffers.values()

    @property
    def constants(self) -> dict[str, Any]:
        """Empty: constants are in the graph."""
        return {}

    tensor_constants = constants

    @property
    def range_constraints(self) -> dict[str, Any]:
        """The dynamic dimensions, by their names."""
        dims = self._sizes.dims if self._sizes is not None else []
        return {dim.__name__: (dim.min, dim.max) for dim in dims}

    def validate(self) -> None:
        """Raises RuntimeError if the graph is not valid."""
        self.graph.lint()

    def run_decompositions(self, decomp_table: Any = None, **options: Any) -> ExportedProgram:
        """Returns self: a graph consists of primitive operators."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ExportedProgram: call its module(), or run()")


def module_of(program: ExportedProgram) -> Any:
    """Returns the module that runs a program."""
    from .nn.module import Module

    class ExportedModule(Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return program.run(*args, **kwargs)

    module: Any = ExportedModule()
    state = program._state
    for name, value in (*state.parameters.items(), *state.buffers.items()):
        *path, last = name.split(".")
        owner = module
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, Module())
            owner = owner._modules[part]
        if name in state.parameters:
            owner.register_parameter(last, value)
        else:
            owner.register_buffer(last, value)
    module.graph = program.graph
    return module


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
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Calls a module or a function without gradients, and returns the operators of the call.

    Parameters are constants of the graph, as are Python numbers and the branches taken.
    dynamic_shapes: for each argument None or a dict {dimension: Dim}, in a dict by name or in
    order; at most three Dims, of which one may be in several places. The call is then captured for
    two sizes of each and once more for a check, with fewer rows or repeated ones, and run() makes
    the graph for other sizes; numbers that differ must be sums of products of the sizes. The other
    arguments are ignored.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"export: args must be a tuple, not {type(args).__name__}")
    tensors: list[Tensor] = []
    arguments = without_tensors((args, kwargs or {}), tensors)
    state = state_of(mod, args, kwargs or {})
    dynamic = None
    if dynamic_shapes is not None:
        dynamic = from_shapes(dynamic_shapes, mod, args, kwargs or {}, "export")

    def call_with(*inputs: Tensor) -> Any:
        positional, named = with_tensors(arguments, list(inputs))
        return mod(*positional, **named)

    if dynamic is None:
        handle, results = captured(call_with, tensors)
        program = ExportedProgram(handle.optimized(), arguments, results, None, state)
        program.example_inputs = (args, kwargs or {})
        return program

    size = dynamic.sizes(tensors, "export")
    examples = dynamic.examples(size, "export")
    calls = [captured(call_with, dynamic.resized(tensors, each)) for each in corners(examples)]
    graphs = [graph for graph, _ in calls]
    results = calls[0][1]
    last = [third for *_, third in examples]
    checked = captured(call_with, dynamic.resized(tensors, last))[0]
    if resized(graphs, last).text() != checked.text():
        raise UnimplementedError(
            f"export: a size is no sum of products of {dynamic.dims}: the graph for {last} does "
            f"not follow from those for {', '.join(map(str, corners(examples)))}"
        )
    sizes = Sizes(dynamic, graphs, size)
    program = ExportedProgram(sizes.graph(size), arguments, results, sizes, state)
    program.example_inputs = (args, kwargs or {})
    return program


draft_export = export


def state_of(mod: Any, args: Any, kwargs: Any) -> State:
    """Returns what there is of a module or a function."""
    from .nn.module import Module

    inputs = names_of(mod, args, kwargs)
    if not isinstance(mod, Module):
        return State((), (), inputs)
    return State(mod.named_parameters(), mod.named_buffers(), inputs)


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Returns a Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def unflatten(module: ExportedProgram, flat_args_adapter: Any = None) -> Any:
    """Returns module.module(): its parameters and buffers are in modules by their names."""
    return module.module()


def default_decompositions() -> dict[Any, Any]:
    """Returns an empty dict: a graph consists of primitive operators."""
    return {}


def register_dataclass(cls: Any, *, serialized_type_name: str | None = None) -> None:
    """Does nothing: arguments and results are tensors in tuples, lists and dicts."""


def packed(structure: Any) -> Any:
    """Returns a structure of arguments for JSON, or raises TypeError."""
    if isinstance(structure, Place):
        return {"place": structure.index}
    if isinstance(structure, (tuple, list)):
        kind = "tuple" if isinstance(structure, tuple) else "list"
        return {kind: [packed(x) for x in structure]}
    if isinstance(structure, dict):
        return {"dict": [[packed(k), packed(v)] for k, v in structure.items()]}
    if structure is None or isinstance(structure, (bool, int, float, str)):
        return {"value": structure}
    raise TypeError(f"save: an argument or a result is a {type(structure).__name__}")


def unpacked(item: Any) -> Any:
    """Returns the structure of which packed() made the item."""
    ((kind, x),) = item.items()
    if kind == "place":
        return Place(x)
    if kind == "value":
        return x
    if kind == "dict":
        return {unpacked(k): unpacked(v) for k, v in x}
    items = [unpacked(i) for i in x]
    return tuple(items) if kind == "tuple" else items


def save(
    ep: ExportedProgram,
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Writes the program to a path or a file that is open: a zip archive of the graph (.ttg), the
    structure of arguments and results, parameters and buffers, and extra_files, texts by names. Of
    dynamic dimensions it has the graphs for other sizes. To a path that ends with .ttg, only the
    graph for the sizes of the example is written, with its constants."""
    if not hasattr(f, "write") and os.fsdecode(f).endswith(".ttg") and not extra_files:
        ep.graph.handle.save(f)
        return
    from .safetensors import save_file

    state = ep._state
    program: dict[str, Any] = {
        "inputs": state.inputs,
        "parameters": list(state.parameters),
        "buffers": list(state.buffers),
    }
    if ep._arguments is not None:
        program["arguments"], program["results"] = packed(ep._arguments), packed(ep._results)
    if ep._sizes is not None:
        program["dynamic"] = ep._sizes.described()
    with tempfile.TemporaryDirectory() as folder:
        graph, tensors = os.path.join(folder, GRAPH), os.path.join(folder, STATE)
        save_file({name: x.detach() for name, x in ep.state_dict.items()}, tensors)
        with zipfile.ZipFile(f, "w") as archive:
            if ep._sizes is not None:
                ep._sizes.write(archive, folder)
            else:
                ep.graph.handle.save(graph)
                archive.write(graph, GRAPH)
            archive.write(tensors, STATE)
            archive.writestr(PROGRAM, json.dumps(program))
            for name, content in (extra_files or {}).items():
                archive.writestr(EXTRA + name, content)


def load(
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Loads a program from a file of save(). extra_files: gets the texts of its names. A program of
    a file .ttg takes the tensors of the captured call in order, and returns a tensor or a tuple."""
    if not zipfile.is_zipfile(f):
        return ExportedProgram(load_graph(f))
    from .nn.parameter import Parameter
    from .safetensors import load_file

    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(f) as archive:
        tensors = load_file(archive.extract(STATE, folder))
        program = json.loads(archive.read(PROGRAM))
        sizes = None
        if "dynamic" in program:
            sizes = Sizes.read(archive, folder, program["dynamic"])
            handle = sizes.graph(sizes.example)
        else:
            handle = load_graph(archive.extract(GRAPH, folder))
        for name in extra_files or ():
            assert extra_files is not None
            extra_files[name] = archive.read(EXTRA + name).decode()
    parameters = {
        name: Parameter(x, requires_grad=x.is_floating_point() or x.is_complex())
        for name, x in ((name, tensors[name]) for name in program["parameters"])
    }
    buffers = {name: tensors[name] for name in program["buffers"]}
    state = State(parameters, buffers, program["inputs"])
    arguments = unpacked(program["arguments"]) if "arguments" in program else None
    results = unpacked(program["results"]) if "results" in program else None
    return ExportedProgram(handle, arguments, results, sizes, state)


def __dir__() -> list[str]:
    return __all__
