"""Constructors of the Rust crate: tt/src/gen/nn.rs (layers), optim.rs (optimizers) and lr.rs
(schedules)."""
from codegen.rust import docs
from codegen.rust.common import (
    HEAD,
    c_arguments,
    doc_lines,
    opts_struct,
    opts_type,
    unsafe_block,
    with_then,
)

MODULES = {
    "nn": "Module",
    "optim": "Optimizer",
    "lr": "Scheduler",
}  # prefix of C names -> the constructed type


def constructor(cls, made, with_opts):
    ps, before, values = c_arguments(cls.positional)
    name = cls.rust_name + ("_with" if with_opts else "")
    if with_opts:
        ps.append(f"opts: {opts_type(cls.rust_name)}")
    if with_opts:
        values.append("&opts.0")
    elif cls.options:
        values.append("std::ptr::null()")
    out = doc_lines(cls, "") + [
        f'#[doc(alias = "{cls.host}")]',
        f"pub fn {name}({', '.join(ps)}) -> Result<{made}> {{",
    ]
    block = unsafe_block(
        f"call1(|c, out| sys::tt_{cls.name}({', '.join(['c'] + values + ['out'])}))"
    )
    copied = [a.name for a in cls.positional if a.type == "Module"]  # stacks of copies
    then = f"crate::utils::hooked::stacked(made, {copied[0]})" if copied else None
    body = before + with_then(block, then)
    return out + [f"    {line}" for line in body] + ["}", ""]


def lazy_constructor(cls, with_opts):
    """The constructor without the first argument, a size that the first input decides."""
    size, *others = cls.positional
    ps, _, _ = c_arguments(others)
    own = cls.rust_name + ("_with" if with_opts else "")
    if with_opts:
        ps.append(f"opts: {opts_type(cls.rust_name)}")
    values = [p.split(":")[0] for p in ps]
    text = (
        f"Makes the layer of [`{own}`] with the `{size.name}` of the first input, or of a state "
        "that is loaded. Until then its parameters have the size 0; they remain the same tensors."
    )
    return docs.lines(text) + [
        f'#[doc(alias = "Lazy{cls.host}")]',
        f"pub fn lazy_{own}({', '.join(ps)}) -> Result<Module> {{",
        f"    {own}({', '.join(['LAZY'] + values)})",
        "}",
        "",
    ]


LAZY = """/// A size that the first input of a layer decides, or a state that is loaded: what
/// [`lazy_linear`] and its like pass.
const LAZY: i64 = sys::TT_NN_LAZY as i64;
"""


def generate(groups):
    out = {prefix: [] for prefix in MODULES}
    for classes in groups.values():
        for cls in classes:
            prefix, cls.rust_name = cls.name.split("_", 1)
            if cls.options:
                out[prefix] += opts_struct(cls, cls.name, f"[`{cls.rust_name}_with`]")
            for with_opts in (False, True) if cls.options else (False,):
                out[prefix] += constructor(cls, MODULES[prefix], with_opts)
                if cls.get("lazy"):
                    out[prefix] += lazy_constructor(cls, with_opts)
    out["nn"].insert(0, LAZY)
    out["lr"].insert(0, "pub use crate::optimizer::{lambda, multiplicative};\n")
    head = HEAD.format("src/nn/decl and src/optim/decl") + "use crate::prelude::*;\n\n"
    return {
        f"bindings/rust/tt/src/gen/{prefix}.rs": head + "\n".join(lines)
        for prefix, lines in out.items()
    }
