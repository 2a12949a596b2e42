"""Constructors of the Rust crate: tt/src/gen/nn.rs (layers), optim.rs (optimizers) and lr.rs
(schedules)."""
from codegen.rust.common import HEAD, c_arguments, doc_lines, opts_struct, opts_type, unsafe_block

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
    values += ["&opts.0"] if with_opts else ["std::ptr::null()"] if cls.options else []
    out = doc_lines(cls, "") + [
        f'#[doc(alias = "{cls.host}")]',
        f"pub fn {name}({', '.join(ps)}) -> Result<{made}> {{",
    ]
    return (
        out
        + [f"    {line}" for line in before]
        + [
            f"    {line}"
            for line in unsafe_block(
                f"call1(|c, out| sys::tt_{cls.name}({', '.join(['c'] + values + ['out'])}))"
            )
        ]
        + ["}", ""]
    )


def generate(groups):
    out = {prefix: [] for prefix in MODULES}
    for classes in groups.values():
        for cls in classes:
            prefix, cls.rust_name = cls.name.split("_", 1)
            if cls.options:
                out[prefix] += opts_struct(cls, cls.name, f"[`{cls.rust_name}_with`]")
            for with_opts in (False, True) if cls.options else (False,):
                out[prefix] += constructor(cls, MODULES[prefix], with_opts)
    head = HEAD.format("src/nn/decl and src/optim/decl") + "use crate::prelude::*;\n\n"
    return {
        f"bindings/rust/tt/src/gen/{prefix}.rs": head + "\n".join(lines)
        for prefix, lines in out.items()
    }
