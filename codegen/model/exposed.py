"""Which definition of each binding calls which function of the C API, read from the bindings'
sources.

A reader gives Definitions: name as a user writes it (private: as the source does), the C names in
it, all words in it. A C function that only private definitions call is exposed by what calls these.
"""
import ast
import re
from dataclasses import dataclass

WIDELY_USED = (
    30  # callers of a definition that exposes nothing of its own, such as what raises errors
)
SHORT = 5  # letters of a name that means other things elsewhere


@dataclass(frozen=True)
class Definition:
    name: str
    public: bool
    calls: frozenset  # C names
    words: frozenset  # the names in it, unqualified

    @property
    def bare(self):
        """How others name it: a constructor by its class."""
        parts = re.split(r"[.:]+", self.name)
        name = parts[-2] if parts[-1] == "__init__" else parts[-1]
        return name.removeprefix("r#")


def define(name, public, words):
    return Definition(
        name, public, frozenset(w for w in words if w.startswith("tt_")), frozenset(words)
    )


def sources(root, files, folder, suffix):
    """(path below folder, text) of every source, generated ones as they stand in files."""
    base = root / folder
    paths = {str(p.relative_to(base)) for p in base.rglob(f"*{suffix}")} | {
        f[len(folder) + 1 :] for f in files if f.startswith(folder + "/") and f.endswith(suffix)
    }
    return [(p, files.get(f"{folder}/{p}") or (base / p).read_text()) for p in sorted(paths)]


# ---- Python ----


def python_words(node):
    """Names, attributes and short strings below a node."""
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            yield n.id
        elif isinstance(n, ast.Attribute):
            yield n.attr
        elif isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.isidentifier():
            yield n.value


def python_tables(tree):
    """Dicts of a module whose keys are constants: name -> {key: words of the value}"""
    found = {}
    for s in tree.body:
        if (
            isinstance(s, ast.Assign)
            and isinstance(s.value, ast.Dict)
            and all(isinstance(k, ast.Constant) for k in s.value.keys)
        ):
            rows = found[s.targets[0].id] = {}
            for k, v in zip(s.value.keys, s.value.values):
                text = v.value if isinstance(v, ast.Constant) and isinstance(v.value, str) else ""
                rows[k.value] = {*python_words(v), *text.split()}
    return found


def python_aliases(tree):
    """Other names of C functions in a module: its lines such as `add, sub = lib.tt_add,
    lib.tt_sub`."""
    found = {}
    for s in tree.body:
        if isinstance(s, ast.Assign):
            names, values = (
                x.elts if isinstance(x, ast.Tuple) else [x] for x in (s.targets[0], s.value)
            )
            pairs = zip(names, values) if len(names) == len(values) else ()
            found.update(
                (n.id, v.attr)
                for n, v in pairs
                if isinstance(n, ast.Name)
                and isinstance(v, ast.Attribute)
                and v.attr.startswith("tt_")
            )
    return found


def module_of(path):
    return path[:-3].replace("/", ".").removesuffix("__init__").rstrip(".")


def taken_names(path, tree):
    """What a package takes from its private modules: (module, name) -> its name there."""
    if not path.endswith("/__init__.py"):
        return
    package = module_of(path)
    for s in tree.body:
        if isinstance(s, ast.ImportFrom) and s.level == 1 and (s.module or "").startswith("_"):
            for n in s.names:
                yield (f"{package}.{s.module}", n.name), f"tt.{package}.{n.asname or n.name}"


def star_imports(trees):
    """Private module -> the module that imports all of its names."""
    found = {}
    for path, tree in trees.items():
        package = (
            module_of(path) if path.endswith("__init__.py") else module_of(path).rpartition(".")[0]
        )
        for s in tree.body:
            if isinstance(s, ast.ImportFrom) and s.level == 1 and s.names[0].name == "*":
                found[f"{package}.{s.module}"] = module_of(path)
    return found


class PythonModule:
    """One module; places: name of an operator, or of what tt takes from its modules -> its public
    name."""

    def __init__(self, path, tree, places, homes):
        """homes: private module -> the public one whose names its names are."""
        self.module = homes.get(module_of(path), module_of(path))
        self.places = places
        self.found = []
        self.aliases = python_aliases(tree)
        self.visit(tree.body, [])

    def public_name(self, parts):
        """The name of a definition for users; None: private."""
        home = "" if self.module.startswith("_ops.") else self.module
        first = self.places.get((home, parts[0]))
        if first is None:
            if any(p.startswith("_") for p in self.module.split(".")) or parts[0].startswith("_"):
                return None
            first = ".".join(x for x in ("tt", self.module, parts[0]) if x)
        if any(p.startswith("_") and not p.startswith("__") for p in parts[1:]):
            return None
        return ".".join([first, *parts[1:]])

    def add(self, parts, words):
        name = self.public_name(parts)
        words = {self.aliases.get(w, w) for w in words}
        self.found.append(
            define(
                name or ".".join(x for x in ("tt", self.module, *parts) if x),
                name is not None,
                words,
            )
        )

    def visit(self, body, parents):
        for s in body:
            if isinstance(s, ast.ClassDef):
                self.visit(s.body, [*parents, s.name])
            elif isinstance(s, ast.FunctionDef):
                self.add([*parents, s.name], set(python_words(s)))
            elif (
                parents
                and isinstance(s, ast.Assign)
                and getattr(getattr(s.value, "func", None), "id", "") in ("finalizer", "property")
            ):
                self.add([*parents, s.targets[0].id], set(python_words(s)))
            elif parents or not isinstance(s, (ast.Assign, ast.Expr)):
                self.add(parents or [""], set(python_words(s)))


def generated_names(path, tree, places):
    """What a public module takes from _handles, by its name there: functions as they are, classes
    by what derives from them. A private module of a package stands for the package."""
    module = module_of(path)
    if path.startswith("_"):
        return
    module = module.split("._")[0]
    taken = {
        n.name
        for s in tree.body
        if isinstance(s, ast.ImportFrom) and s.module == "_handles"
        for n in s.names
    }
    for name in taken:
        yield ("_handles", name), places.get((module, name)) or f"tt.{module}.{name}"
    for s in tree.body:
        if isinstance(s, ast.ClassDef) and s.bases and getattr(s.bases[0], "id", "") in taken:
            yield ("_handles", s.bases[0].id), places.get(
                (module, s.name)
            ) or f"tt.{module}.{s.name}"


def python(root, files):
    folder = "bindings/python/tt"
    trees = {
        path: ast.parse(text)
        for path, text in sources(root, files, folder, ".py")
        if path not in ("_abi.py", "_structs.py")
    }
    places = {}
    for path, tree in trees.items():
        places.update(taken_names(path, tree))
    for place in (("_tensor", "Tensor"), ("_tensor_facts", "TensorFacts")):
        places[place] = "tt.Tensor"
    for module, words in python_tables(trees["__init__.py"]).get("ELSEWHERE", {}).items():
        places.update(((module, w), f"tt.{w}") for w in words)
    for path, tree in trees.items():
        places.update(generated_names(path, tree, places))
    operators = python_tables(trees["_ops/__init__.py"])
    for place in reversed(list(operators["PLACES"])):
        places.update(
            (("", w), f"{place if place.startswith('tt') else 'tt.' + place}.{w}")
            for w in operators["PLACES"][place]
        )
    homes = star_imports(trees)
    return [
        d for path, tree in trees.items() for d in PythonModule(path, tree, places, homes).found
    ]


# ---- Rust ----

RUST = re.compile(
    r"^( *)(pub(?:\((?:crate|super)\))? )?(?:const |unsafe |extern \"C\" )*(?:(?P<impl>impl)\b(?P<type>.*)|mod (?P<mod>\w+) \{|fn (?P<fn>(?:r#)?\w+))"
)


def rust_type(text):
    """Type and trait of what follows `impl`."""
    text = re.sub(r"^<[^<>]*(?:<[^<>]*>[^<>]*)*>", "", text.strip())
    trait, _, of = text.rpartition(" for ")
    return re.match(r"[&']*(?:\w+::)*(\w*)", of.strip()).group(1), bool(trait)


def rust_file(path, text):
    module = path[:-3].split("/")[-1]
    stack, found = [], []  # (indent, kind, name, public)
    words = {}
    for line in re.sub(r"//.*", "", text).splitlines():
        m = RUST.match(line)
        indent = len(line) - len(line.lstrip())
        if line.strip() and (m or line.strip() == "}"):
            while stack and stack[-1][0] >= indent:
                stack.pop()
        if m and m.group("fn"):
            owner = stack[-1] if stack and stack[-1][1] == "impl" else None
            public = (m.group(2) == "pub ") or bool(owner and owner[3])
            home = ""
            if owner:
                home = owner[2] + "::"
            elif module in ("nn", "optim", "lr") or not public:
                home = f"{module}::"
            stack.append((indent, "fn", home + m.group("fn"), public))
        elif m:
            name, trait = rust_type(m.group("type")) if m.group("impl") else (m.group("mod"), False)
            stack.append((indent, "impl" if m.group("impl") else "mod", name, trait))
        at = next((s for s in reversed(stack) if s[1] == "fn"), (0, "mod", module, False))
        words.setdefault((at[2], at[3]), set()).update(re.findall(r"\w+", line))
    return [define(name, public, w) for (name, public), w in words.items()]


def rust(root, files):
    return [
        d
        for path, text in sources(root, files, "bindings/rust/tt/src", ".rs")
        for d in rust_file(path, text)
    ]


# ---- Julia ----

JULIA = re.compile(
    r"^(?:@\w+ )*(?:function )?(?:((?:\w+\.)*:?\(?[\w!+*/^=]+\)?)(?:\{.*?\})?\(|\(\w+::(\w+)\)\()|^(?:mutable )?struct (\w+)|^const (\w+)"
)
JULIA_INNER = re.compile(r"function ([\w.!]+)\(|^ +@eval (?:@inline )?([\w.!]+)\(", re.M)


def julia_file(path, text):
    found = []
    text = re.sub(r'^"""\n.*?^"""$', "", text, flags=re.S | re.M)
    for block in re.split(
        r"^(?=[^\s#)\]}])(?!end\b)", re.sub(r"^\s*#.*$", "", text, flags=re.M), flags=re.M
    ):
        m = JULIA.match(block) or JULIA_INNER.search(block)
        name = next((g for g in m.groups() if g), None) if m else None
        name = re.sub(r"^Base\.:?\(?", "Base.", name).strip(":()") if name else path
        found.append(define(name, True, set(re.findall(r"[\w!]+", block))))
    return found


def julia(root, files):
    """Functions of TT have its prefix, but for those that it exports; methods of Base have none."""
    skip = ("gen/c.jl", "gen/names.jl")
    text = (root / "bindings/julia/src/TT.jl").read_text()
    bare = set(re.findall(r"\w+!?", re.search(r"^export (.*)$", text, re.M)[1]))
    named = [
        (d, path)
        for path, text in sources(root, files, "bindings/julia/src", ".jl")
        if path not in skip
        for d in julia_file(path, text)
    ]
    homes = {"gen/nn.jl": "nn.", "gen/optim.jl": "optim."}

    def in_full(name, path):
        if name.startswith("Base.") or name in bare:
            return name.removeprefix("Base.")
        return homes.get(path, "TT.") + name

    return [Definition(in_full(d.name, path), d.public, d.calls, d.words) for d, path in named]


# ---- the name that exposes a function ----


def plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def best(definitions, c):
    """Of the definitions, the one a user would look for: public, named like the C function, in few
    modules, short."""
    like = plain(c[3:])
    return min(
        definitions,
        key=lambda d: (
            not d.public,
            not like.endswith(plain(d.bare)) or not plain(d.bare),
            plain(d.bare) not in like,
            d.name.count("."),
            len(d.name),
            d.name,
        ),
    )


def names(definitions, c_names):
    """C name -> the name that exposes it, of those that a definition calls."""
    callers = {}
    users = {}
    for d in definitions:
        for c in d.calls & c_names:
            callers.setdefault(c, []).append(d)
        for w in d.words:
            users.setdefault(w, []).append(d)
    out = {}
    for c, found in callers.items():
        chosen = best(found, c)
        for _ in range(3):
            if chosen.public:
                break
            above = [
                d
                for f in found
                if len(f.bare) > SHORT and f.bare[:2] != "__"
                for d in users.get(f.bare, ())
                if d not in found
            ]
            if not 0 < len(above) <= WIDELY_USED:
                break
            found = above
            chosen = best(above, c) if any(d.public for d in above) else chosen
        out[c] = chosen.name
    return out
