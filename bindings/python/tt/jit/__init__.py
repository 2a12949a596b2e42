"""torch.jit: tt has no TorchScript. Functions and modules run in Python, and a traced one can be
saved as a graph that runs without its code.

script() and trace() return what they are given, as a ScriptFunction or a ScriptModule: calls run
Python, so gradients, other shapes and branches work as without them. save() captures the call that
trace() was given. Functions that only mark their argument for a compiler return it unchanged.
"""
from __future__ import annotations

import builtins
import io
import json
import os
import zipfile
from contextlib import AbstractContextManager, nullcontext
from functools import update_wrapper
from tempfile import TemporaryDirectory
from typing import Any, Callable

from .. import serialization
from .._absent import absent_function
from .._dynamic import Dim, Dynamic
from .._graph import GraphHandle, Plan, captured
from .._graph import load as load_graph
from .._tensor import Tensor
from .._tree import Place, with_tensors, without_tensors
from ..autograd import no_grad
from ..errors import TtError
from ..export import Sizes, repr_of
from ..fx.captured import Graph, result_of
from ..nn.module import Module
from ..nn.parameter import Parameter

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
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
_enabled = False  # whether script() compiles
_get_trace_graph = absent_function(
    "jit._get_trace_graph",
    "tt has no TorchScript: tt.fx and tt.export trace, utils.flop_counter counts",
)
fork = absent_function("jit.fork", "tt has no TorchScript: use Python's threads")
wait = absent_function("jit.wait", "tt has no TorchScript: use Python's threads")


# ---- functions and modules that stand for compiled ones ----


class TracerWarning(Warning):
    """PyTorch's warning while it traces, for filters of programs. tt does not give it."""


class Saved:
    """The result of script() and trace(). _example: the arguments of the traced call, or None."""

    _example: Any = None

    @property
    def graph(self) -> Any:
        """The operators of the traced call."""
        return Graph(recorded(self)[0][0])

    @property
    def code(self) -> str:
        """The operators of the traced call, as a text."""
        return str(self.graph)

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes the traced call to a file: see jit.save."""
        save(self, f, _extra_files)


class ScriptFunction(Saved):
    """A function of script() or trace(). Calls run the function itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


class ScriptModule(Module, Saved):
    """A module of script(), trace() or load(). It has the parameters and the children of the module
    that it was made of, and calls run that module's forward."""

    original_name = ""


scripted_classes: dict[type, type] = {}  # class of a module -> its ScriptModule


def scripted_class(cls: type) -> type:
    """Returns the subclass of a module's class that is a ScriptModule, too."""
    if cls not in scripted_classes:

        def reduce(self: Any) -> Any:
            return revived, (cls, self.__getstate__())

        names = {"original_name": cls.__name__, "__module__": cls.__module__, "__reduce__": reduce}
        names["__doc__"] = cls.__doc__
        scripted_classes[cls] = type(cls.__name__, (cls, ScriptModule), names)
    return scripted_classes[cls]


def revived(cls: type, state: Any) -> Any:
    """Returns a scripted module from a pickle."""
    made: Any = object.__new__(scripted_class(cls))
    made.__setstate__(state)
    return made


def scripted(module: Module, example: Any = None) -> Any:
    """Returns a module as a ScriptModule over the same parameters, buffers and children."""
    if builtins.isinstance(module, ScriptModule):
        made: Any = module
    else:
        made = object.__new__(scripted_class(type(module)))
        made.__dict__.update(module.__dict__)
    if example is not None:
        made.__dict__["_example"] = example
    return made


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """Returns a function as a ScriptFunction, a module as a ScriptModule, and a class unchanged.
    The other arguments are ignored."""
    if builtins.isinstance(obj, Module):
        return scripted(obj)
    if builtins.isinstance(obj, (type, ScriptFunction)):
        return obj
    if not callable(obj):
        raise TypeError(
            f"jit.script: obj is a {type(obj).__name__}: must be a function or a module"
        )
    return ScriptFunction(obj)


def trace(
    func: Callable[..., Any],
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    example_kwarg_inputs: dict[str, Any] | None = None,
    **unused: Any,
) -> Any:
    """Calls a function or a module, and returns it as script() does. save() writes this call.

    example_inputs: the arguments, a tuple or one tensor; example_kwarg_inputs: named ones instead.
    The other arguments are ignored.
    """
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("jit.trace: example_inputs or example_kwarg_inputs must be given")
    args = example_inputs if example_inputs is not None else ()
    if builtins.isinstance(args, list):
        args = tuple(args)
    if not builtins.isinstance(args, tuple):
        args = (args,)
    example = args, dict(example_kwarg_inputs or {})
    made = scripted(func, example) if builtins.isinstance(func, Module) else script(func)
    made.__dict__["_example"] = example
    with no_grad():
        made(*args, **example[1])
    return made


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Returns trace(mod, inputs["forward"])."""
    if list(inputs) != ["forward"]:
        raise ValueError(f"jit.trace_module: inputs has {sorted(inputs)}: must be ['forward']")
    return trace(mod, inputs["forward"], *args, **kwargs)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Returns mod, which must be in evaluation mode."""
    if not builtins.isinstance(mod, ScriptModule):
        raise RuntimeError("jit.freeze: mod must be a ScriptModule: call jit.script first")
    if mod.training:
        raise RuntimeError("jit.freeze: mod is in training mode: call eval() first")
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Returns mod."""
    return mod


# ---- files ----


def state_of(saved: Any) -> dict[str, Tensor]:
    """Returns the parameters and buffers of a module by name, each once."""
    if not builtins.isinstance(saved, Module):
        return {}
    return {**dict(saved.named_parameters()), **dict(saved.named_buffers())}


def recorded(saved: Any) -> tuple[list[GraphHandle], Dynamic | None, Any]:
    """Records the traced call. Returns its graphs, which dimension of its arguments may have
    another size, and the structure of its result. Inputs of the graphs are the tensors among the
    arguments, then those of state_of().

    If the call works for other sizes of the first dimension, there is a second graph for one more
    row, from which others follow.
    """
    if saved._example is None:
        raise RuntimeError(
            "jit.save: a file holds the operators of one call: make the module or function by "
            "jit.trace, with the arguments of an example"
        )
    tensors: list[Tensor] = []
    structure = without_tensors(saved._example, tensors)
    state = list(state_of(saved).values())

    def call_with(*inputs: Tensor) -> Any:
        args, kwargs = with_tensors(structure, list(inputs))
        return saved(*args, **kwargs)

    fixed, result = captured(call_with, [*tensors, *state])
    rows = {x.shape[0] for x in tensors if x.ndim}
    if len(rows) != 1 or 0 in rows:
        return [fixed.optimized()], None, result
    dynamic = rows_of([0 if x.ndim else None for x in tensors])
    size = max(2, *rows)  # a size of 1 broadcasts
    try:
        one, other, third = (
            captured(call_with, [*dynamic.resized(tensors, [size + more]), *state])[0]
            for more in (0, 1, 3)
        )
        if copied(one).resized(copied(other), size + 3).text() == third.text():
            return [one, other], dynamic, result
    except (TtError, ValueError, TypeError):
        pass  # the call takes no other size
    return [fixed.optimized()], None, result


def rows_of(dims: list[int | None]) -> Dynamic:
    """Returns one dynamic dimension. dims: which of each tensor's it is, or None."""
    return Dynamic([Dim("rows")], [{} if d is None else {d: 0} for d in dims])


def copied(graph: GraphHandle) -> GraphHandle:
    """Returns a graph as it will be read from a file: its constants are other ones."""
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.ttg")
        graph.save(path)
        return load_graph(path)


def plain(structure: Any) -> Any:
    """Returns a structure of places and plain values as JSON has it."""
    if builtins.isinstance(structure, (tuple, list)):
        kind = "tuple" if builtins.isinstance(structure, tuple) else "list"
        return {kind: [plain(x) for x in structure]}
    if builtins.isinstance(structure, dict):
        return {"dict": [[k, plain(v)] for k, v in structure.items()]}
    if builtins.isinstance(structure, Place):
        return {"tensor": structure.index}
    if structure is None or builtins.isinstance(structure, (bool, int, float, str)):
        return structure
    raise TypeError(
        f"jit.save: the call has a {type(structure).__name__} among its arguments or results: must "
        "be tensors, numbers, texts, None and lists, tuples and dicts of them"
    )


def revive(x: Any) -> Any:
    """Returns the structure that plain() has described."""
    if not builtins.isinstance(x, dict):
        return x
    ((kind, content),) = x.items()
    if kind == "tensor":
        return Place(content)
    if kind == "dict":
        return {k: revive(v) for k, v in content}
    items = [revive(v) for v in content]
    return tuple(items) if kind == "tuple" else items


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a traced function or module, with its parameters and buffers, to a file or a binary
    stream, which load() reads without its code.

    The loaded call takes any number of rows, the first dimension of all its tensors, if the traced
    one can be computed with more; otherwise that of the example.
    _extra_files: texts by name, written beside it.
    """
    if builtins.isinstance(m, Loaded):
        graphs, dynamic, result, example = m._graphs, m._dynamic, m._result, m._structure
    elif builtins.isinstance(m, Saved):
        graphs, dynamic, result = recorded(m)
        example = without_tensors(m._example, [])
    else:
        raise TypeError(f"jit.save: m is a {type(m).__name__}: must come from jit.trace")
    of_module = builtins.isinstance(m, Module)
    about = {
        "example": plain(example),
        "result": plain(result),
        "rows": dynamic and [next(iter(place), None) for place in dynamic.places],
        "parameters": [name for name, _ in m.named_parameters()] if of_module else [],
        "training": getattr(m, "training", False),
        "name": getattr(m, "original_name", "") or getattr(m, "__name__", ""),
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive, TemporaryDirectory() as folder:
        archive.writestr("tt_jit.json", json.dumps(about))
        state = io.BytesIO()
        serialization.save({k: v.detach() for k, v in state_of(m).items()}, state)
        archive.writestr("state.pt", state.getvalue())
        for i, graph in enumerate(graphs):
            path = os.path.join(folder, "graph.ttg")
            graph.save(path)
            archive.write(path, f"graph{i}.ttg")
        for name, text in (_extra_files or {}).items():
            archive.writestr("extra/" + name, text)
    if hasattr(f, "write"):
        f.write(data.getvalue())
        return
    with open(f, "wb") as file:
        file.write(data.getvalue())


class Loaded(ScriptModule):
    """A call that load() has read. It takes arguments like those of the traced call, has the
    parameters and buffers of the traced module, and records no gradients."""

    def __init__(self, graphs: list[GraphHandle], about: Any, state: dict[str, Tensor]) -> None:
        super().__init__()
        own = self.__dict__
        own["_graphs"], own["_plan"] = graphs, None
        own["_structure"], own["_result"] = revive(about["example"]), revive(about["result"])
        own["_dynamic"] = about["rows"] and rows_of(about["rows"])
        own["_sizes"] = Sizes(self._dynamic, graphs) if self._dynamic else None
        own["original_name"] = about["name"]
        for name, t in state.items():
            path, _, last = name.rpartition(".")
            owner: Module = self
            for part in path.split(".") if path else ():
                if part not in owner._modules:
                    owner.add_module(part, Module())
                owner = owner.get_submodule(part)
            if name in about["parameters"]:
                owner.register_parameter(last, Parameter(t))
            else:
                owner.register_buffer(last, t)
        self.train(about["training"])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        tensors: list[Tensor] = []
        wanted, given = repr_of(self._structure), repr_of(without_tensors((args, kwargs), tensors))
        if given != wanted:
            raise ValueError(f"the arguments are {given}, those of the traced call {wanted}")
        if self._sizes is not None:
            plan = self._sizes.plan(tensors)
        elif self._plan is None:
            plan = self.__dict__["_plan"] = Plan(self._graphs[0])
        else:
            plan = self._plan
        return result_of(self._result, plan.run([*tensors, *state_of(self).values()]))

    @property
    def graph(self) -> Any:
        return Graph(self._graphs[0])

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def _get_name(self) -> str:
        return "RecursiveScriptModule"


def load(f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None) -> Any:
    """Reads a file or a stream of save() and returns a module. map_location is ignored: results
    are on the device of the traced call. _extra_files: names whose values it replaces by texts."""
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            return load(io.BytesIO(file.read()), map_location, _extra_files)
    try:
        archive = zipfile.ZipFile(io.BytesIO(f.read()))
        about = json.loads(archive.read("tt_jit.json"))
    except (zipfile.BadZipFile, KeyError):
        raise RuntimeError(
            "jit.load: this is no file of tt.jit.save; tt does not read TorchScript: save "
            "state_dict() in PyTorch, and load it by tt.load"
        ) from None
    graphs = []
    with archive, TemporaryDirectory() as folder:
        for i in range(2 if about["rows"] else 1):
            graphs.append(load_graph(archive.extract(f"graph{i}.ttg", folder)))
        state = serialization.load(io.BytesIO(archive.read("state.pt")))
        for name in _extra_files or ():
            _extra_files[name] = archive.read("extra/" + name)  # type: ignore[index]
    return Loaded(graphs, about, state)


# ---- marks for the compiler ----


class Final:
    """Final[T] is T. It is a mark for TorchScript's compiler."""

    def __class_getitem__(cls, type: Any) -> Any:
        return type


def export(fn: Any) -> Any:
    """Returns fn."""
    return fn


unused = script_if_tracing = script_method = export
_script_if_tracing = _overload = _overload_method = export


def interface(obj: type) -> type:
    """Returns obj: functions are not compiled, so that any object fits an interface."""
    return obj


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
