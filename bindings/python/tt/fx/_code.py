"""The Python code of graphs."""
from __future__ import annotations

import builtins
import keyword
import math
import re
import sys
from types import ModuleType
from typing import Any

import tt

from .._interception import ensure_built
from .._tensor import Tensor
from .._types import Size, device, dtype
from .node import Node, qualified_name

# Functions of the module operator -> how code says them
INFIX = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
}
IN_PLACE = {
    f"i{name.rstrip('_')}": form.replace(" {}", "= {}")
    for name, form in INFIX.items()
    if form.count("{}") == 2 and name not in ("getitem", "eq", "ne", "lt", "gt", "le", "ge")
}
RESERVED = {"inf", "nan", "NoneType", "tt", "torch", "device"} | set(dir(builtins))


class PythonCode:
    """Generated code: src, and the objects that its global names stand for."""

    def __init__(self, src: str, globals: dict[str, Any]) -> None:
        self.src, self.globals = src, globals


class Names:
    """The names that a graph has given."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}

    def create(self, candidate: str) -> str:
        """Returns an unused identifier like the candidate."""
        candidate = re.sub(r"\W+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (found[1], int(found[2])) if found else (candidate, None)
        name = candidate
        if number is None:
            number = self.counts.get(base, 0)
        while name in self.used or keyword.iskeyword(name) or name in RESERVED:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        self.counts[base] = number
        return name


class Writer:
    """Writes the code of a graph."""

    def __init__(self, graph: tt.fx.Graph, root: str) -> None:
        ensure_built()
        self.graph, self.root = graph, root
        self.globals: dict[str, Any] = {}
        self.names = Names()
        self.names.used |= graph._names.used
        self.inputs: list[str] = []
        self.lines: list[str] = []
        self.last_uses = last_uses(graph)

    def code(self) -> PythonCode:
        for node in self.graph.nodes:
            self.lines += self.statement(node)
        body = "".join(f"    {line}\n" for line in self.lines or ["pass"])
        order = sorted(self.inputs, key=lambda text: text.startswith("*"))
        head = f"def forward({', '.join([self.root, *order])}):\n"
        return PythonCode(f"\n\n\n{head}{body}    ", self.globals)

    def statement(self, node: Node) -> list[str]:
        """The lines of a node."""
        name = node.name
        if node.op == "placeholder":
            default = f" = {self.text(node.args[0])}" if node.args else ""
            self.inputs.append(node.target + default)
            plain = node.target.lstrip("*")
            return [f"{name} = {plain}"] if plain != name else []
        if node.op == "output":
            return [f"return {self.text(node.args[0])}"]
        return [self.computed(node) + self.deleted(node)]

    def computed(self, node: Node) -> str:
        """The statement that computes a node."""
        name, args = node.name, node.args
        if node.op == "get_attr":
            return f"{name} = {attribute(self.root, node.target)}"
        if node.op == "call_module":
            return f"{name} = {attribute(self.root, node.target)}({self.arguments(node)})"
        if node.op == "call_method":
            rest = self.arguments(node, 1)
            return f"{name} = {attribute(self.text(args[0]), node.target)}({rest})"
        target = node.target
        module, own = getattr(target, "__module__", None), getattr(target, "__name__", "")
        if module == "_operator" and own in INFIX and not node.kwargs:
            return f"{name} = {INFIX[own].format(*map(self.text, args))}"
        if module == "_operator" and own in IN_PLACE and not node.kwargs:
            first = self.text(args[0])
            return f"{IN_PLACE[own].format(first, self.text(args[1]))};  {name} = {first}"
        if target is getattr and isinstance(args[1], str) and args[1].isidentifier():
            if len(args) == 2:
                return f"{name} = {attribute(self.text(args[0]), args[1])}"
        return f"{name} = {self.function(target)}({self.arguments(node)})"

    def function(self, target: Any) -> str:
        """The text that names a function, whose module becomes a global."""
        name = qualified_name(target)
        found: Any = builtins
        top, *rest = name.split(".")
        if rest:
            found = sys.modules.get(top)
            for part in rest:
                found = getattr(found, part, None)
            if found is target:
                self.globals[top] = sys.modules[top]
                return name
        elif getattr(builtins, name, None) is target:
            return name
        return self.object(name.replace(".", "_"), target)

    def object(self, hint: str, value: Any) -> str:
        """The global name of an object that has no text of its own."""
        for name, other in self.globals.items():
            if other is value:
                return name
        name = self.names.create(re.sub(r"\W", "_", hint))
        self.globals[name] = value
        return name

    def deleted(self, node: Node) -> str:
        """The end of a statement, which drops values that are not used any more."""
        unused = [*self.last_uses.get(node, ()), *([] if node.users else [node])]
        return f";  {' = '.join([n.name for n in unused] + ['None'])}" if unused else ""

    def arguments(self, node: Node, skip: int = 0) -> str:
        given = [self.text(x) for x in node.args[skip:]]
        return ", ".join(given + [f"{k} = {self.text(v)}" for k, v in node.kwargs.items()])

    def text(self, x: Any) -> str:
        """The text of an argument."""
        if isinstance(x, Node):
            return x.name
        if type(x) in (int, bool, str, bytes, type(None), type(...), complex):
            return repr(x)
        if isinstance(x, float):
            return repr(x) if math.isfinite(x) else self.unusual_float(x)
        if isinstance(x, Size):
            return f"{self.object('Size', Size)}([{', '.join(map(self.text, x))}])"
        if isinstance(x, tuple):
            if hasattr(x, "_fields"):
                kind = self.object(type(x).__name__, type(x))
                return f"{kind}({', '.join(map(self.text, x))})"
            return f"({', '.join(map(self.text, x))}{',' if len(x) == 1 else ''})"
        if isinstance(x, list):
            return f"[{', '.join(map(self.text, x))}]"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{k!r}: {self.text(v)}" for k, v in x.items()) + "}"
        if isinstance(x, slice):
            return f"slice({', '.join(map(self.text, (x.start, x.stop, x.step)))})"
        if isinstance(x, (dtype,)):
            import tt

            self.globals["tt"] = tt
            return repr(x)
        if isinstance(x, device):
            return f"{self.object('device', device)}({str(x)!r})"
        if isinstance(x, (type, ModuleType)) or callable(x) and not isinstance(x, Tensor):
            return self.function(x) if hasattr(x, "__name__") else self.object("object", x)
        return self.object(type(x).__name__, x)

    def unusual_float(self, x: float) -> str:
        """The text of an infinity or nan."""
        if x != x:
            return self.named("nan", math.nan)
        return ("-" if x < 0 else "") + self.named("inf", math.inf)

    def named(self, name: str, value: Any) -> str:
        self.globals[name] = value
        return name


def attribute(base: str, path: str) -> str:
    """The text of an attribute by its dotted path."""
    for part in path.split("."):
        if part.isidentifier() and not keyword.iskeyword(part):
            base = f"{base}.{part}"
        else:
            base = f'getattr({base}, "{part}")'
    return base


def last_uses(graph: tt.fx.Graph) -> dict[Node, list[Node]]:
    """Returns node -> the values that it is the last one to use."""
    found: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for user in reversed(graph.nodes):
        for node in user.all_input_nodes:
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
    return found
