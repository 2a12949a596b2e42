"""The errors that an operator can raise, read from the functions of src/ops that implement it."""
import re
from collections import defaultdict
from dataclasses import dataclass, field

from codegen.docs.sources import CALLED, functions, sources
from codegen.model.schema import split_top

UNNAMED = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.M | re.S)
FAILURE = re.compile(r"fail(_arg)?\(TT_(\w+),\s*((?:\"(?:[^\"\\]|\\.)*\"|[^;])*?)\);", re.S)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# shared by all operators: their errors are in docs/reference/README.md
SHARED = {"elementwise", "impl", "undo"}


def literal(text):
    """The value of adjacent string literals, or None for any other expression."""
    if STRING.sub("", text).strip():
        return None
    return "".join(STRING.findall(text)).replace('\\"', '"')


def split_arguments(text):
    """Splits at the commas outside brackets and strings."""
    hidden = STRING.sub(lambda m: '"' + re.sub(r"[^\\]", "_", m[1]).replace("\\", "_") + '"', text)
    at = 0
    parts = []
    for part in split_top(hidden):
        begin = hidden.index(part, at)
        at = begin + len(part)
        parts.append(text[begin:at])
    return parts


@dataclass
class Function:
    """What the functions of one name in one file call, and how they fail."""

    calls: set = field(default_factory=set)
    failures: list = field(default_factory=list)  # (status, text)
    exported: bool = False  # other files can call one of them


def failures_in(body):
    for named, status, arguments in FAILURE.findall(body):
        parts = split_arguments(arguments)[1 if named else 0 :]
        message = literal(parts[0]) if parts else None
        if message and not message.startswith("{}"):
            yield status, message.replace("{}", "…")


class Messages:
    """The errors of each operator's implementation, as (status, message)."""

    def __init__(self, ops, root):
        self.ops = ops
        self.functions = defaultdict(dict)  # name -> {path: Function}
        for path in sources(root / "src/ops"):
            if path.stem not in SHARED:
                self.read(path, path.read_text())

    def read(self, path, text):
        local = [match.span() for match in UNNAMED.finditer(text)]
        for name, body, at_name, at in functions(text):
            function = self.functions[name].setdefault(path, Function())
            function.calls |= set(CALLED.findall(body))
            function.failures += failures_in(body)
            within = any(begin < at < end for begin, end in local)
            function.exported |= not within and "static " not in text[at:at_name]

    def meant(self, name, path):
        """The files whose function of a name a call in path means: path itself, if it has one."""
        paths = self.functions.get(name, {})
        if path in paths:
            return [path]
        return [p for p in paths if paths[p].exported]

    def of(self, name):
        """The errors of an operator, in the order of the functions, its own functions first."""
        seen = set()
        found = []
        todo = [(name, path) for path in self.meant(name, None)]
        while todo:
            function = todo.pop(0)
            if function in seen:
                continue
            seen.add(function)
            name, path = function
            known = self.functions[name][path]
            found += [row for row in known.failures if row not in found]
            for callee in sorted(n for n in known.calls if n not in self.ops):
                todo += [(callee, p) for p in self.meant(callee, path)]
        return found
