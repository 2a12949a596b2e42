"""The errors that an operator can raise, read from the functions of src/ops that implement it."""
import re
from collections import defaultdict

from codegen.model.schema import split_top

FUNCTION = re.compile(
    r"^(?:template <[^\n]*>\s*)?(?:TT_COLD |static |inline )*[A-Za-z_][\w:<>,&* ]*?[ &*]"
    r"(?:impl::)?(\w+)\(([^;{}]*)\)(?: const)?(?: noexcept)? \{(.*?)(?:^\}|\}$)",
    re.M | re.S,
)
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
    at, parts = 0, []
    for part in split_top(hidden):
        begin = hidden.index(part, at)
        at = begin + len(part)
        parts.append(text[begin:at])
    return parts


class Messages:
    """The errors of each operator's implementation, as (status, message)."""

    def __init__(self, ops, root):
        self.ops = ops
        self.failures = defaultdict(list)  # function -> (status, text)
        self.calls = defaultdict(set)
        for path in sorted((root / "src/ops").rglob("*.cpp")):
            if path.parent.name != "gen" and path.stem not in SHARED:
                self.read(path.read_text())

    def read(self, text):
        for match in FUNCTION.finditer(text):
            name, _, body = match.groups()
            self.calls[name] |= set(re.findall(r"\b(\w+)\(", body))
            for named, status, arguments in FAILURE.findall(body):
                parts = split_arguments(arguments)[1 if named else 0 :]
                message = literal(parts[0]) if parts else None
                if message and not message.startswith("{}"):
                    self.failures[name].append((status, message.replace("{}", "…")))

    def of(self, name):
        """The errors of an operator, in the order of the functions, its own functions first."""
        seen, todo, found = set(), [name], []
        while todo:
            function = todo.pop(0)
            if function in seen or function not in self.calls:
                continue
            seen.add(function)
            found += [row for row in self.failures[function] if row not in found]
            todo += sorted(n for n in self.calls[function] if n not in self.ops)
        return found
