"""Reads and checks the declarations: everything the emitters need to know about an operator."""
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from codegen.model import checks
from codegen.model.checks import DeclError
from codegen.model.flops import check_flops

# schema type -> C++ type of the internal API
CPP_TYPES = {
    "Tensor": "const Tensor&",
    "Tensor!": "Tensor&",
    "Tensor?": "const Tensor*",
    "Tensor!?": "Tensor*",
    "Tensor[]": "TensorSpan",
    "Tensor?[]": "TensorSpan",
    "Scalar": "const Scalar&",
    "Scalar?": "const Scalar*",
    "Float": "double",
    "Float?": "Opt<double>",
    "Int": "int64_t",
    "Int?": "Opt<int64_t>",
    "Bool": "bool",
    "Bool?": "Opt<bool>",
    "Dim": "int64_t",
    "Dim?": "Opt<int64_t>",
    "Dims": "Ints",
    "Dims?": "Opt<Ints>",
    "Index": "int64_t",
    "Index?": "Opt<int64_t>",
    "Size": "Ints",
    "Shape": "Ints",
    "Int[]": "Ints",
    "Index[]": "Indices",
    "DType": "Dtype",
    "DType?": "Dtype",
    "Device": "Device",
    "Device?": "Opt<Device>",
    "MemoryFormat": "int64_t",
    "Generator": "Generator*",
    "Str": "Str",
    "Rng": "const Rng&",
    "Object": "Object&",
    # of classes (classes.py)
    "Tensor![]": "TensorSpan",
    "Float[]": "Span<const double>",
    "Float[2]": "Pair",
    "Optimizer": "Optimizer&",
    "Scheduler[]": "Span<Scheduler* const>",
    "Module": "Module*",
    "Module?": "Module*",
    "Module[]": "Span<Module* const>",
}
ENUM = re.compile(r"Enum<(\w+)>$")
OUT_TYPES = {
    "Tensor",
    "IndexTensor",
    "BoolTensor",
    "PlainTensor",
    "Tensor[]",
}  # PlainTensor: floating, but carries no gradient
ENUM_FILE = "enums.toml"  # of the declarations
# choices that applications see: name -> {value name: number}, and what each choice is about
ENUMS = tomllib.loads((Path(__file__).parents[2] / "src/ops/decl" / ENUM_FILE).read_text())
ENUM_DOCS = ENUMS.pop("docs")
checks.check_enums(ENUMS)


@dataclass
class Arg:
    name: str
    type: str
    default: str | None = None  # source text; None: required
    positional: bool = True  # false: a field of the opts struct
    doc: str = ""

    @property
    def doc_with_default(self):
        """The doc and the default, which a doc may state itself: "default: the dtype of self"."""
        if "default: " in self.doc:
            return self.doc
        default = "default: none" if self.default == "None" else f"default: {self.default}"
        return f"{self.doc}; {default}" if self.doc else default

    @property
    def enum(self):
        m = ENUM.match(self.type)
        return m.group(1) if m else None

    @property
    def cpp(self):
        return "int64_t" if self.enum else CPP_TYPES[self.type]

    @property
    def is_tensor(self):
        return self.type in ("Tensor", "Tensor!", "Tensor?", "Tensor!?")

    @property
    def is_tensorish(self):
        return self.type.startswith("Tensor")


@dataclass
class Out:
    name: str
    type: str

    @property
    def differentiable(self):
        return self.type in ("Tensor", "Tensor[]")


@dataclass
class Op:
    name: str
    family: str
    schema: str
    args: list
    outs: list
    raw: dict = field(repr=False, default_factory=dict)
    overrides: dict = field(repr=False, default_factory=dict)  # language -> key -> value
    scalar_of: str | None = None  # this is the scalar overload of that operator
    scalar_arg: str | None = None  # the Scalar argument that gets _f64, _i64 and _scalar forms

    def get(self, key, default=None):
        return self.raw.get(key, default)

    @property
    def host(self):
        return self.raw.get("host", self.name)

    @property
    def python(self):
        return self.overrides.get("python", {})

    @property
    def symbol_key(self):
        """(symbol, number of operands) of an operator with a symbol, None for its form for
        numbers."""
        symbol = self.get("symbol")
        if not symbol or self.scalar_of:
            return None
        return symbol, sum(a.is_tensor for a in self.args)

    @property
    def internal(self):
        return bool(self.raw.get("internal"))

    @property
    def structural(self):
        """Whether its implementation launches no kernel: it makes a view, allocates, or calls other
        operators."""
        return self.view or self.is_composite or bool(self.get("no_kernel"))

    @property
    def is_composite(self):
        """Whether it is made of other operators."""
        return bool(self.composite) or self.get("impl") == "composite"

    @property
    def kind(self):
        """What it computes: dispatch/op_info.h, OpKind."""
        if self.elementwise:
            return "Elementwise"
        if self.is_composite and not self.has_grad:
            return "Composite"
        return "View" if self.view else self.get("kind", "other").capitalize()

    @property
    def alias(self):
        """Whether a result shares memory with an argument: dispatch/op_info.h, Alias."""
        return "View" if self.view else self.get("alias", "none").capitalize()

    @property
    def wide_unsigned(self):
        """What it does with uint16, uint32 and uint64: dispatch/op_info.h, WideUnsigned."""
        if self.get("wide_unsigned"):
            return self.get("wide_unsigned").capitalize()
        if self.kind in ("View", "Copy", "Composite") or self.kernel.get("set") == "all":
            return "Moves"
        if not self.elementwise:
            return "None"
        return "Float" if self.get("dtype") == "float" else "Mixed"

    def autocast(self, device):
        """What autocast does on a type of device: "lower", "fp32", "promote" or None."""
        policy = self.get("autocast")
        return policy.get(device) if isinstance(policy, dict) else policy

    @property
    def no_opts(self):
        return bool(self.raw.get("no_opts"))

    @property
    def variants(self):
        return self.raw.get("variants", [])

    @property
    def kernel(self):
        return self.raw.get("kernel", {})

    @property
    def elementwise(self):
        return self.kernel.get("elementwise")

    @property
    def composite(self):
        return self.raw.get("composite")

    @property
    def view(self):
        return bool(self.raw.get("view"))

    @property
    def grad(self):
        return self.raw.get("grad", {})

    @property
    def has_grad(self):
        return isinstance(self.grad, dict) and bool(self.grad)

    @property
    def list_out(self):
        return len(self.outs) == 1 and self.outs[0].type == "Tensor[]"

    @property
    def void(self):
        return not self.outs

    @property
    def returns(self):
        if self.void:
            return "void"
        if self.list_out:
            return "TensorList"
        return ("TensorRef", "TensorPair", "TensorTriple", "TensorQuad")[len(self.outs) - 1]

    @property
    def positional(self):
        return [a for a in self.args if a.positional]

    @property
    def options(self):
        return [a for a in self.args if not a.positional]

    def arg(self, name):
        return next((a for a in self.args if a.name == name), None)


def split_top(text, sep=","):
    """Splits at separators outside brackets."""
    parts = []
    depth = 0
    start = 0
    for i, ch in enumerate(text):
        depth += ch in "([{<"
        depth -= ch in ")]}>"
        if ch == sep and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in parts + [text[start:]] if p.strip()]


def parse_args(name, text):
    args = []
    for part in split_top(text):
        match = re.match(r"(\w+):\s*([\w?\[\]!<>]+)(?:\s*=\s*(.*))?$", part)
        if not match:
            raise DeclError(f"{name}: argument {part!r} is not 'name: Type = default'")
        arg = Arg(*match.groups())
        if arg.type not in CPP_TYPES and arg.enum not in ENUMS:
            raise DeclError(f"{name}: argument {arg.name} has unknown type {arg.type!r}")
        if arg.name in (other.name for other in args):
            raise DeclError(f"{name}: two arguments are called {arg.name}")
        if arg.enum and arg.default and arg.default.strip('"') not in ENUMS[arg.enum]:
            raise DeclError(f"{name}: {arg.name} has no value {arg.default}")
        args.append(arg)
    return args


def parse_schema(name, text):
    m = re.match(r"(\w+)\((.*)\)\s*->\s*(.*)$", text)
    if not m or m.group(1) != name:
        raise DeclError(f"{name}: schema {text!r} is not 'name(arg: Type = default, …) -> Type'")
    args = parse_args(name, m.group(2))
    result = m.group(3).strip()
    if result == "()":
        return args, []
    if result.startswith("("):
        outs = [Out(*map(str.strip, part.split(":"))) for part in split_top(result[1:-1])]
    else:
        outs = [Out("out", result)]
    for o in outs:
        if o.type not in OUT_TYPES:
            raise DeclError(f"{name}: result {o.name} has unknown type {o.type!r}")
    return args, outs


def make_op(name, family, raw):
    checks.check_keys(name, raw)
    args, outs = parse_schema(name, raw["schema"])
    op = Op(name, family, raw["schema"], args, outs, raw)
    checks.check_op(op)
    check_flops(op)
    for a in args:
        a.positional = op.internal or a.default is None or a.name in raw.get("positional", [])
        a.doc = raw.get("args", {}).get(a.name, "")
    return op


def scalar_overload(op):
    """The operator with its tensor argument `scalar` replaced by a Scalar: its own op object, the
    same formulas."""
    which = op.get("scalar")
    raw = {k: v for k, v in op.raw.items() if k not in ("scalar", "schema")}
    if "reads_self" in raw:
        raw["reads_self"] = [name for name in raw["reads_self"] if name != which]
    raw["schema"] = re.sub(rf"\b{which}: Tensor\b", f"{which}: Scalar", op.schema).replace(
        f"{op.name}(", f"{op.name}_scalar(", 1
    )
    raw["host"] = op.host
    if "scalar_check" in raw.get("kernel", {}):
        raw["kernel"] = raw["kernel"] | {"check": raw["kernel"]["scalar_check"]}
    if isinstance(raw.get("forward_ad"), dict):
        raw["forward_ad"] = {k: v for k, v in raw["forward_ad"].items() if k != which}
    if isinstance(op.grad, dict):
        raw["grad"] = {k: v for k, v in op.grad.items() if k != which}
        if not raw["grad"]:
            raw["grad"] = "none"
    over = make_op(f"{op.name}_scalar", op.family, raw)
    over.scalar_of = op.name
    return over


def load(folder, root):
    """All operators by name, in a fixed order."""
    paths = sorted(path for path in Path(folder).glob("*.toml") if path.name != ENUM_FILE)
    return read({path.stem: path.read_text() for path in paths}, formula_functions(root))


def read(texts, functions):
    """texts: family -> its declarations; functions: what formulas may call besides operators."""
    ops = {}
    for family, text in texts.items():
        table = tomllib.loads(text)
        defaults = table.pop("defaults", {})
        for name, raw in table.items():
            if name in ops:
                raise DeclError(f"{name}: declared twice")
            own_way = set(checks.WAYS) & set(raw)
            inherited = {k: v for k, v in defaults.items() if not (own_way and k in checks.WAYS)}
            merged = inherited | raw
            op = make_op(name, family, merged)
            op.scalar_of = raw.get("overload_of")
            ops[name] = op
            if op.get("scalar"):
                over = scalar_overload(op)
                ops[over.name] = over
    for op in ops.values():
        required = [a for a in op.positional if a.type == "Scalar"]
        if len(required) == 1 and not op.internal:
            op.scalar_arg = required[0].name
    checks.check_table(ops)
    for op in ops.values():
        checks.check_formulas(op, ops, functions)
    return ops


def formula_functions(root):
    """Names declared in autograd/formulas: what formulas may call besides operators."""
    paths = sorted((Path(root) / "src/autograd/formulas").glob("*.h"))
    return {name for path in paths for name in re.findall(r"\b(\w+)\(", path.read_text())}
