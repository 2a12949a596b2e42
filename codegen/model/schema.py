"""Reads and checks the declarations: everything the emitters need to know about an operator."""
import ast
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

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
    # of classes (classes.py)
    "Tensor![]": "TensorSpan",
    "Float[]": "Span<const double>",
    "Float[2]": "Pair",
    "Optimizer": "Optimizer&",
    "Scheduler[]": "Span<Scheduler* const>",
    "Module": "Module&",
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
DTYPE_RULES = {"promote", "float", "bool", "same", "logical", "cast", "first", "modulus", "none"}
ENUM_FILE = "enums.toml"  # of the declarations
# host-visible choices: name -> {value name: number}
ENUMS = tomllib.loads((Path(__file__).parents[2] / "src/ops/decl" / ENUM_FILE).read_text())


class DeclError(Exception):
    pass


@dataclass
class Arg:
    name: str
    type: str
    default: str | None = None  # source text; None: required
    positional: bool = True  # false: a field of the opts struct
    doc: str = ""

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
    scalar_of: str | None = None  # this is the scalar overload of that operator
    scalar_arg: str | None = None  # the Scalar argument that gets _f64, _i64 and _scalar forms

    def get(self, key, default=None):
        return self.raw.get(key, default)

    @property
    def host(self):
        return self.raw.get("host", self.name)

    @property
    def internal(self):
        return bool(self.raw.get("internal"))

    @property
    def structural(self):
        """Its implementation launches no kernel: a view, an allocation, calls of other operators."""
        return (
            self.view
            or bool(self.composite)
            or self.get("impl") == "composite"
            or bool(self.get("no_kernel"))
        )

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
        return {1: "TensorRef", 2: "TensorPair", 3: "TensorTriple"}[len(self.outs)]

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
    parts, depth, start = [], 0, 0
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
        am = re.match(r"(\w+):\s*([\w?\[\]!<>]+)(?:\s*=\s*(.*))?$", part)
        if not am:
            raise DeclError(f"{name}: argument {part!r} is not 'name: Type = default'")
        if am.group(2) not in CPP_TYPES and not (
            ENUM.match(am.group(2)) and ENUM.match(am.group(2)).group(1) in ENUMS
        ):
            raise DeclError(f"{name}: argument {am.group(1)} has unknown type {am.group(2)!r}")
        args.append(Arg(am.group(1), am.group(2), am.group(3)))
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


KNOWN_KEYS = {  # what each means: src/ops/decl/README.md
    "schema",
    "host",
    "overload_of",
    "internal",
    "since",
    "doc",
    "args",
    "samples",
    "positional",
    "no_opts",
    "scalar",
    "variants",
    "direct",
    "inline_capi",
    "impl",
    "composite",
    "kernel",
    "dtype",
    "view",
    "no_kernel",
    "grad",
    "nondiff",
    "reads_self",
    "python",
    "rust",
    "julia",
}
KERNEL_KEYS = {
    "elementwise",
    "set",
    "functor",
    "operands",
    "params",
    "promote_params",
    "factor",
    "masks",
    "no_bool",
    "vectors",
    "check",
}


def make_op(name, family, raw):
    unknown = set(raw) - KNOWN_KEYS
    if unknown:
        raise DeclError(f"{name}: unknown keys {sorted(unknown)}")
    if "schema" not in raw:
        raise DeclError(f"{name}: no schema")
    args, outs = parse_schema(name, raw["schema"])
    op = Op(name, family, raw["schema"], args, outs, raw)
    docs = raw.get("args", {})
    for doc in docs:
        if not op.arg(doc):
            raise DeclError(f"{name}: documents an argument {doc!r} that does not exist")
    for a in args:
        a.positional = op.internal or a.default is None or a.name in raw.get("positional", [])
        a.doc = docs.get(a.name, "")
    check(op)
    return op


def check(op):
    raw = op.raw
    if not op.internal and not raw.get("doc"):
        raise DeclError(f"{op.name}: no doc")
    if not op.internal and "samples" not in raw:
        raise DeclError(f"{op.name}: no samples")
    ways = [k for k in ("kernel", "composite", "impl") if k in raw]
    if len(ways) != 1:
        raise DeclError(f"{op.name}: needs exactly one of kernel, composite, impl")
    if set(op.kernel) - KERNEL_KEYS:
        raise DeclError(f"{op.name}: unknown keys {sorted(set(op.kernel) - KERNEL_KEYS)} in kernel")
    if op.elementwise and raw.get("dtype") not in DTYPE_RULES:
        raise DeclError(f"{op.name}: dtype rule {raw.get('dtype')!r} is unknown")
    if not op.composite and "grad" not in raw and raw.get("impl") != "composite":
        raise DeclError(f'{op.name}: no gradient (say grad = "none" if it has none)')
    if op.has_grad:
        for names in op.grad:
            for n in names.split(","):
                a = op.arg(n)
                if not a or not a.is_tensorish:
                    raise DeclError(f"{op.name}: gradient for {n!r}, which is no tensor argument")
    if set(op.variants) - {"inplace", "into"}:
        raise DeclError(f"{op.name}: unknown variants {op.variants}")
    reads_self = op.get("reads_self", [])
    if reads_self and not (op.structural and "inplace" in op.variants):
        raise DeclError(f"{op.name}: reads_self is for composites with an in-place variant")
    if set(reads_self) - {a.name for a in op.args if a.is_tensorish}:
        raise DeclError(f"{op.name}: reads_self names {reads_self}, which are no tensor arguments")
    if set(op.get("direct", [])) - set(
        op.variants
    ):  # variants with a hand-written implementation of their own
        raise DeclError(f"{op.name}: direct names {op.get('direct')}, variants are {op.variants}")


def scalar_overload(op):
    """The operator with its tensor argument `scalar` replaced by a Scalar: its own op object, the same formulas."""
    which = op.get("scalar")
    dropped = ("scalar", "schema", "reads_self")
    raw = {k: v for k, v in op.raw.items() if k not in dropped}
    raw["schema"] = re.sub(rf"\b{which}: Tensor\b", f"{which}: Scalar", op.schema).replace(
        f"{op.name}(", f"{op.name}_scalar(", 1
    )
    raw["host"] = op.host
    if isinstance(op.grad, dict):
        raw["grad"] = {k: v for k, v in op.grad.items() if k != which}
        if not raw["grad"]:
            raw["grad"] = "none"
    over = make_op(f"{op.name}_scalar", op.family, raw)
    over.scalar_of = op.name
    return over


def load(folder, root):
    """All operators by name, in a fixed order."""
    ops = {}
    for path in sorted(Path(folder).glob("*.toml")):
        if path.name == ENUM_FILE:
            continue
        table = tomllib.loads(path.read_text())
        defaults = table.pop("defaults", {})
        for name, raw in table.items():
            if name in ops:
                raise DeclError(f"{name}: declared twice")
            ways = {"kernel", "composite", "impl"}
            inherited = {k: v for k, v in defaults.items() if not (k in ways and ways & set(raw))}
            merged = inherited | raw
            op = make_op(name, path.stem, merged)
            op.scalar_of = raw.get("overload_of")
            ops[name] = op
            if op.get("scalar"):
                over = scalar_overload(op)
                ops[over.name] = over
    for op in ops.values():
        required = [a for a in op.positional if a.type == "Scalar"]
        if len(required) == 1 and not op.internal:
            op.scalar_arg = required[0].name
    functions = formula_functions(root)
    for op in ops.values():
        check_formulas(op, ops, functions)
    return ops


def formula_functions(root):
    """Names declared in src/autograd/formulas.h: what formulas may call besides operators."""
    path = Path(root) / "src/autograd/formulas.h"
    return set(re.findall(r"\b(\w+)\(", path.read_text())) if path.exists() else set()


BUILTINS = {"conj"}


def calls_in(expr):
    return {
        n.func.id
        for n in ast.walk(ast.parse(expr, mode="eval"))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }


def check_formulas(op, ops, functions):
    known = {o.name for o in ops.values()} | {o.host for o in ops.values()} | functions | BUILTINS
    exprs = list(op.grad.values()) if op.has_grad else []
    exprs += [op.composite] if op.composite else []
    for expr in exprs:
        for name in calls_in(expr) - known:
            raise DeclError(
                f"{op.name}: formula calls {name!r}, which is no declared operator or formula function"
            )
        allowed = {a.name for a in op.args} | {
            "grads",
            "results",
            "needs",
            "rng",
            "True",
            "False",
            "None",
        }
        for node in ast.walk(ast.parse(expr, mode="eval")):
            if isinstance(node, ast.Name) and node.id not in allowed | known:
                raise DeclError(f"{op.name}: formula uses unknown name {node.id!r}")
