"""Operators of the Rust crate: tt/src/gen/ops.rs (methods of Tensor, functions) and
tt/src/gen/opts.rs.

An operator whose first argument is a tensor is a method, others are functions. What writes into an
argument is unsafe."""
from codegen.c.ops import c_name, forms
from codegen.cxx.ops import api_name, dst_names, variants_of
from codegen.rust.common import (
    HEAD,
    c_arguments,
    doc_lines,
    header_opts,
    opts_struct,
    opts_type,
    snake,
    types,
    unsafe_block,
)
from codegen.rust.sys_crate import KEYWORDS

SAFETY = [
    "/// # Safety",
    "/// Nothing else may read or write the memory that this writes while it runs, slices of it",
    "/// included: clones alias.",
]
IMPORTS = "use crate::prelude::*;\n"
FAMILIES = {  # family -> the heading of its methods
    "activation": "Activations",
    "arith": "Arithmetic",
    "arrange": "Joining, splitting and rearranging",
    "attention": "Attention",
    "bitwise": "Bits and logic",
    "compare": "Comparison and selection",
    "complex": "Complex numbers",
    "conv": "Convolutions",
    "copy": "Copies and conversions",
    "factory": "Tensors like this one",
    "index": "Indexing",
    "linalg": "Linear algebra",
    "loss": "Losses",
    "matmul": "Matrix products",
    "norm": "Normalisation",
    "pool": "Pooling",
    "random": "Random numbers",
    "reduce": "Reductions",
    "resize": "Resizing of images",
    "scan": "Cumulative operators",
    "softmax": "Softmax",
    "sort": "Sorting and searching",
    "special": "Special functions",
    "unary": "Elementwise functions",
    "view": "Views",
}


def methods_of(family, lines):
    """One impl block: rustdoc shows its heading."""
    heading = FAMILIES.get(family, family.capitalize())
    return [f"/// # {heading}", "impl Tensor {", *lines, "}", ""]


class Method:
    """One Rust function: a variant of an operator, with its options or without."""

    def __init__(self, op, variant, with_opts):
        self.op = op
        self.variant = variant
        self.with_opts = with_opts
        self.receiver = (
            op.args[0].name
            if op.positional
            and op.positional[0].name == op.args[0].name
            and op.args[0].type in ("Tensor", "Tensor!")
            else None
        )
        self.writes = bool(variant) or any("!" in a.type for a in op.args)
        stem = op.rust_name[:-1] if op.rust_name.endswith("_") else op.rust_name
        mark = "_" if op.rust_name.endswith("_") else variant
        self.name = f"{stem}_with{mark}" if with_opts else stem + mark
        if self.name in KEYWORDS:
            self.name = "r#" + self.name

    def lines(self):
        op = self.op
        indent = "    " if self.receiver else ""
        args = [a for a in op.positional]
        ps, before, values = c_arguments(
            [a for a in args if a.name != op.scalar_arg], self.receiver
        )
        if op.scalar_arg:
            at = [a.name for a in args].index(op.scalar_arg)
            n = snake(op.scalar_arg)
            ps.insert(at, f"{n}: impl Into<Scalar>")
            before.append(f"let {n} = {n}.into();")
        if self.with_opts:
            ps.append(f"opts: {opts_type(op.rust_name)}")
        if self.variant == "_into":
            ps += [f"{d.lower()}: &Tensor" for d in dst_names(op)]
        doc = self.doc() + (["///"] + SAFETY if self.writes else [])
        if op.host != op.name:
            doc.append(f'#[doc(alias = "{op.host}")]')
        out = doc + [
            f"#[inline]\npub {'unsafe ' if self.writes else ''}fn {self.name}({', '.join(ps)}) -> Result<{self.result()}> {{".replace(
                "\n", "\n" + indent
            )
        ]
        out += (
            ["    " + line for line in before]
            + ["    " + line for line in self.call(values)]
            + ["}"]
        )
        return [indent + line if line else line for line in out]

    def doc(self):
        if not self.variant and not self.with_opts:
            return doc_lines(self.op, "    ")
        plain = Method(self.op, "", False)
        how = {
            "": "",
            "_": ", in place",
            "_into": ", into `dst`, which has the result's shape and dtype",
        }[self.variant]
        target = "Tensor::" if self.receiver else ""
        target += plain.name.replace("r#", "")
        link = f"[`{plain.name}`]" + (f"({target})" if target != plain.name else "")
        return [f"/// Computes {link}{' with options' if self.with_opts else ''}{how}."]

    def result(self):
        op = self.op
        if self.variant or op.void:
            return "()"
        if op.list_out:
            return "Vec<Tensor>"
        return "Tensor" if len(op.outs) == 1 else "(" + ", ".join(["Tensor"] * len(op.outs)) + ")"

    def call(self, values):
        op = self.op
        outs = []
        helper = "call"
        if self.variant == "_into":
            outs = [f"{d.lower()}.raw()" for d in dst_names(op)]
        elif not self.variant and not op.void:
            outs = ["outs", "cap", "n"] if op.list_out else [f"o{k}" for k in range(len(op.outs))]
            helper = "call_list" if op.list_out else "call1"
        given = []
        if helper != "call":
            given = outs if op.list_out else outs[:1]
        opening = f"{helper}(|{', '.join(['c'] + given)}| "
        body = self.c_call(
            values,
            outs if op.list_out or self.variant else outs[:1] + [f"&mut {o}" for o in outs[1:]],
        )
        text = opening + body + ")"
        if self.variant or len(op.outs) < 2:
            return unsafe_block(text, self.writes)
        more = [o for o in outs[1:]]
        lines = [
            f"let ({', '.join('mut ' + o for o in more)}) = ({', '.join(['std::ptr::null_mut()'] * len(more))});".replace(
                "(mut o1)", "mut o1"
            ).replace(
                "= (std::ptr::null_mut());", "= std::ptr::null_mut();"
            )
        ]
        take = f"({text}?, {', '.join(f'Tensor::from_raw({o})' for o in more)})"
        return lines + unsafe_block(f"Ok({take})", self.writes)

    def c_call(self, values, outs):
        op = self.op
        options = ["&opts.0"] if self.with_opts else []
        rows = {suffix: takes for suffix, _, takes in forms(op)}

        def one(suffix, scalar=None):
            args = list(values)
            if scalar:
                args.insert([a.name for a in op.positional].index(op.scalar_arg), scalar)
            more = []
            if rows[suffix]:
                more = options or ["std::ptr::null()"]
            return (
                f"sys::{c_name(op, suffix, self.variant)}({', '.join(['c'] + args + more + outs)})"
            )

        if not op.scalar_arg:
            return one("_ex" if op.no_opts and self.with_opts else "")
        n = snake(op.scalar_arg)
        if op.no_opts and self.with_opts:
            return one("_scalar_ex", f"&{n}.raw()")
        return (
            f"match {n} {{ Scalar::Float(v) => {one('_f64', 'v')}, Scalar::Int(v) => {one('_i64', 'v')}, "
            f"_ => {one('_scalar', f'&{n}.raw()')} }}"
        )


def own_opts(op):
    """Does the operator have its own options struct, and not that of the operator it is a form
    of?"""
    return bool(op.options) and api_name(op) == op.name


def prepare(op, ops):
    op.rust_name = op.overrides["rust"].get("name", op.name)
    op.opts_name = api_name(op) if not own_opts(op) else op.name


def generate(ops, groups, api):
    public = [op for op in ops.values() if not op.internal]
    for op in public:
        prepare(op, ops)
    methods = {}
    functions = []
    names = []
    opts = []
    for op in public:
        if own_opts(op):
            opts += opts_struct(op, op.name, f"`{op.rust_name}`")
        elif op.options:
            opts += [
                f"/// Options of `{op.rust_name}`.",
                f"pub type {opts_type(op.rust_name)} = {opts_type(op.opts_name)};",
                "",
            ]
        for v in variants_of(op):
            for with_opts in (False, True) if op.options else (False,):
                m = Method(op, v, with_opts)
                if m.receiver:
                    methods.setdefault(op.family, []).extend(m.lines())
                else:
                    functions += m.lines()
                    names.append(m.name)
    declared = set(ops) | {cls.name for classes in groups.values() for cls in classes}
    for _, lines in header_opts(api, declared):
        opts += lines
    decl = HEAD.format("src/ops/decl")
    blocks = [line for family, lines in methods.items() for line in methods_of(family, lines)]
    text = decl + IMPORTS + "\n" + "\n".join(blocks + functions) + "\n"
    folder = "bindings/rust/tt/src/gen"
    return {
        f"{folder}/ops.rs": text,
        f"{folder}/opts.rs": decl + "use crate::prelude::*;\n\n" + "\n".join(opts),
        f"{folder}/types.rs": types(api),
    }
