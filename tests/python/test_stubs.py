"""The type stubs say what the binding has: every public name, with the parameters and defaults that it takes at run time."""
import ast
import inspect
from pathlib import Path

import pytest

import tt
from tt import _nn_classes, _optim_classes
from tt.optim.optimizer import IGNORED

FOLDER = Path(tt.__file__).parent
# of Tensor, object's and ctypes' own, and what only pickle, NumPy or the subclass machinery calls
MACHINERY = {
    "__dict__",
    "__doc__",
    "__module__",
    "__weakref__",
    "__slots__",
    "__del__",
    "__reduce__",
    "__setstate__",
    "__buffer__",
    "__init_subclass__",
    "__ctypes_from_outparam__",
    "__static_attributes__",
    "__firstlineno__",
    "__getattr__",
}
modules = {}


def stub_of(name):
    """name -> its nodes in a module's stub: functions, classes, annotations, imports."""
    if name not in modules:
        path = FOLDER.joinpath(*name.split(".")[1:])
        path = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
        modules[name] = nodes_of(ast.parse(path.read_text()).body)
    return modules[name]


def nodes_of(body):
    found = {}
    for s in body:
        if isinstance(s, ast.ImportFrom):
            names = [a.asname for a in s.names]
        else:
            names = (
                [s.name]
                if hasattr(s, "name")
                else [s.target.id]
                if isinstance(s, ast.AnnAssign)
                else [t.id for t in s.targets]
                if isinstance(s, ast.Assign)
                else []
            )
        for n in names:
            found.setdefault(n, []).append(s)
    return found


def found(module, name):
    """The nodes of a public name, through the imports of stubs; None where it is a module."""
    nodes = stub_of(module)[name]
    if not isinstance(nodes[0], ast.ImportFrom):
        return nodes
    parts = module.split(".")
    package = FOLDER.joinpath(*parts[1:]).is_dir()
    base = parts[: len(parts) - nodes[0].level + package]
    source = ".".join(base + ([nodes[0].module] if nodes[0].module else []))
    if not nodes[0].module:
        return None
    return (
        found(source, name)
        if (FOLDER / Path(*source.split(".")[1:])).with_suffix(".pyi").exists()
        or (FOLDER / Path(*source.split(".")[1:])).is_dir()
        else []
    )


def arguments(node):
    """parameter -> its default, inspect's empty without one, ... where the stub does not say which."""
    a, out = node.args, {}
    plain = a.posonlyargs + a.args
    for arg, d in [
        *zip(plain, [None] * (len(plain) - len(a.defaults)) + a.defaults),
        *zip(a.kwonlyargs, a.kw_defaults),
    ]:
        out[arg.arg] = inspect.Parameter.empty if d is None else ast.literal_eval(d)
    return out


def agree(label, function, nodes, method=False):
    """The parameters of the stub's overloads together are those of the function, with its defaults."""
    taken = list(inspect.signature(function).parameters.values())[method:]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in taken):
        return
    stated = {}
    for node in nodes:
        for i, (name, default) in enumerate(arguments(node).items()):
            if not (method and i == 0):
                stated.setdefault(name, set()).add(repr(default))
    assert set(stated) | {a.vararg.arg for a in (n.args for n in nodes) if a.vararg} == {
        p.name for p in taken
    }, label
    for p in taken:
        known = stated.get(p.name, set()) - {"Ellipsis"}
        if len(nodes) == 1 and known:
            assert known == {repr(p.default)} or repr(p.default)[:3] == "tt.", f"{label}: {p.name}"
        elif p.default not in (None, inspect.Parameter.empty):
            assert known <= {repr(p.default), repr(inspect.Parameter.empty)}, f"{label}: {p.name}"


@pytest.mark.parametrize(
    "module",
    [tt, tt.nn, tt.nn.functional, tt.optim, tt.optim.lr_scheduler, tt.nn.utils, tt.linalg],
    ids=lambda m: m.__name__,
)
def test_modules(module):
    for name in module.__all__:
        nodes, value = found(module.__name__, name), getattr(module, name)
        if nodes is None or not nodes:
            assert inspect.ismodule(value) or name == "build_info"
        elif inspect.isclass(value):
            assert isinstance(nodes[0], ast.ClassDef), name
        elif callable(value):
            agree(f"{module.__name__}.{name}", value, nodes)
        else:
            assert isinstance(nodes[0], ast.AnnAssign), name


def test_tensor():
    stub = nodes_of(found("tt", "Tensor")[0].body)
    names = {
        n for n in tt.Tensor.__dict__ if not n.startswith("_") or n.startswith("__")
    } - MACHINERY
    assert names - set(stub) == set() and set(stub) - names == set()
    for name in names:
        value, nodes = getattr(tt.Tensor, name), stub[name]
        if (
            inspect.isfunction(value)
            and not name.startswith("__")
            and isinstance(nodes[0], ast.FunctionDef)
        ):
            agree(f"Tensor.{name}", value, nodes, True)


@pytest.mark.parametrize(
    "module, classes, more",
    [("tt.nn", _nn_classes.CLASSES, {}), ("tt.optim", _optim_classes.CLASSES, IGNORED)],
)
def test_constructors_of_the_librarys_classes(module, classes, more):
    checked = 0
    for name, (_, _, rows) in classes.items():
        home = (
            "tt.optim.lr_scheduler"
            if rows and module == "tt.optim" and name not in _optim_classes.VALUES
            else module
        )
        init = nodes_of(found(home, name)[0].body).get("__init__")
        if name in ("Sequential", "ModuleList", "ModuleDict", "Identity", "ChainedScheduler"):
            continue
        taken = {
            key: default[0] if default else inspect.Parameter.empty
            for key, _, default, _, _ in rows
        }
        taken.update(more if home == "tt.optim" else {})
        stated = arguments(init[0])
        del stated["self"]
        assert {k: repr(v) for k, v in stated.items()} == {
            k: repr(v) for k, v in taken.items()
        }, name
        assert {a.arg for a in init[0].args.kwonlyargs} == {r[0] for r in rows if r[4]} | set(
            more if home == "tt.optim" else ()
        ), name
        checked += 1
    assert checked > 10


def test_methods_of_modules_and_optimizers():
    for module, name in (
        ("tt.nn", "Module"),
        ("tt.optim", "Optimizer"),
        ("tt.optim.lr_scheduler", "LRScheduler"),
        ("tt.autograd.function", "Function"),
    ):
        cls = getattr(__import__(module, fromlist=[name]), name)
        stub = nodes_of(found(module, name)[0].body)
        for n, value in cls.__dict__.items():
            if inspect.isfunction(value) and not n.startswith("_"):
                if isinstance(stub[n][0], ast.FunctionDef):
                    agree(f"{name}.{n}", value, stub[n], True)


def test_the_package_says_that_it_has_types():
    assert (FOLDER / "py.typed").exists()
