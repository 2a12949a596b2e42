"""Modules whose forward is generated from a traced graph."""
from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

from ..nn.module import Module
from .._tensor import Tensor
from .graph import Graph, PythonCode

TYPE_CHECKING = False

__all__ = ["GraphModule"]

serial = itertools.count()


def compiled_forward(code: PythonCode) -> Any:
    """Returns the function forward of generated code, whose lines tracebacks show."""
    name = f"<eval_with_key>.{next(serial)}"
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(True), name)
    names = dict(code.globals)
    exec(compile(code.src, name, "exec"), names)
    return names["forward"]


def copy_attribute(source: Any, to: Module, path: str) -> None:
    """Gives `to` what source has at a dotted path. Modules on the way are made."""
    *prefix, last = path.split(".")
    for part in prefix:
        source = getattr(source, part)
        if not hasattr(to, part):
            setattr(to, part, Module())
        to = getattr(to, part)
        if to is source:
            return
    give_attribute(to, last, getattr(source, last))


def assign_attribute(value: Any, to: Module, path: str) -> None:
    """Sets the attribute at a dotted path. Modules on the way are made."""
    *prefix, last = path.split(".")
    for part in prefix:
        if not hasattr(to, part):
            setattr(to, part, Module())
        to = getattr(to, part)
    give_attribute(to, last, value)


def give_attribute(to: Module, name: str, value: Any) -> None:
    from ..nn.parameter import Parameter

    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to.register_buffer(name, value)
    else:
        setattr(to, name, value)


class GraphModule(Module):
    """A module that computes a graph. It has the submodules and tensors that the nodes name.

    root: a module that has them, or a dict from dotted names to them
    graph: is copied if it has a module already. After a change of it, recompile() makes code.
    class_name: the name of the class
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        made = type(cls.__name__, (cls,), {}) if "forward" not in vars(cls) else cls
        made.__module__, made.__qualname__ = cls.__module__, cls.__qualname__
        return super().__new__(made)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    copy_attribute(root, self, node.target)
        elif isinstance(root, dict):
            targets = {n.target for n in graph.nodes if n.op in ("get_attr", "call_module")}
            for target in sorted(targets, key=lambda name: name.count(".")):
                if target not in root:
                    raise RuntimeError(
                        f"GraphModule: the graph names {target}, which the dict lacks"
                    )
                assign_attribute(root[target], self, target)
        else:
            raise RuntimeError(f"GraphModule: root is {type(root).__name__}: a Module or a dict")
        self.__dict__["meta"] = {}
        self.graph = graph

    def _of_graph(self, graph: Graph) -> None:
        self.__dict__["_graph"] = graph
        graph.owning_module = self
        self.recompile()

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "graph":
            super().__setattr__(name, value)
            return
        if not isinstance(value, Graph):
            raise AssertionError(f"GraphModule: graph is a {type(value).__name__}: must be a Graph")
        taken = value.owning_module not in (None, self)
        self._of_graph(copy.deepcopy(value) if taken else value)

    if not TYPE_CHECKING:

        @property
        def graph(self) -> Graph:
            """The graph. Changes of it take effect by recompile(); assigning one does both."""
            return self.__dict__["_graph"]

    @property
    def code(self) -> str:
        """The Python code of the graph."""
        return str(self._code)

    def recompile(self) -> PythonCode:
        """Makes forward from the graph. Returns its code."""
        code: PythonCode = self.graph.python_code("self")
        self.__dict__["_code"] = code.src
        setattr(type(self), "forward", compiled_forward(code))
        return code

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Prints the code as a class, and returns it."""
        lines = "\n".join(f"    {line}".rstrip() for line in self.code.strip().splitlines())
        text = f"class {type(self).__name__}(Module):\n{lines}\n"
        if print_output:
            print(text)
        return text

    # ---- submodules ----

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a submodule by its dotted name. Returns False if a part of the name is no module."""
        *prefix, last = target.split(".")
        owner: Module = self
        for part in prefix:
            found = getattr(owner, part, None)
            if found is None:
                found = Module()
                setattr(owner, part, found)
            if not isinstance(found, Module):
                return False
            owner = found
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Removes a submodule by its dotted name. Returns False if there is none."""
        path, _, last = target.rpartition(".")
        owner: Any = self
        for part in path.split(".") if path else ():
            owner = getattr(owner, part, None)
        if not isinstance(owner, Module) or not isinstance(getattr(owner, last, None), Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Removes the submodules that no node names."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
                if node.op == "call_module":
                    inner = self.get_submodule(node.target).named_modules()
                    used |= {f"{node.target}.{name}" for name, _ in inner if name}
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies ----

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        plain = Module()
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        plain.__dict__.update(copy.deepcopy(state, memo))
        return self._copied(plain, copy.deepcopy(self.graph, memo))

    def __copy__(self) -> GraphModule:
        return self._copied(self, self.graph)

    def _copied(self, root: Module, graph: Graph) -> GraphModule:
        made = GraphModule(root, graph, type(self).__name__)
        names = ("_graph", "_code")
        made.__dict__.update({k: v for k, v in root.__dict__.items() if k not in names})
        return made

    def __reduce__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        return restored_module, (state, self.graph, type(self).__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __str__(self) -> str:
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self.code, note])

    def __repr__(self) -> str:
        return str(super().__repr__())


def restored_module(state: dict[str, Any], graph: Graph, class_name: str) -> GraphModule:
    """Unpickles a GraphModule."""
    root = Module()
    root.__dict__.update(state)
    made = GraphModule(root, graph, class_name)
    made.__dict__.update(state)
    return made
