"""Rows of the hostile-argument test of layers, optimizers and schedulers.

tests/gen/class_rows.inc: one constructor per class, its arguments taken from an array of Given (the
test declares it), and one row {C name, name, kind of its handle, constructor, required inputs of
forward, arguments, {{name, type, has a default}, …}}. tests/gen/enum_calls.inc: one call per Enum<>
argument of an exported C function, with a number that is none of its values.
"""
from codegen.c import classes
from codegen.c.ops import exported
from codegen.cxx.modules import Layer
from codegen.cxx.ops import HEADER
from codegen.tests.rows import hostile

LISTS = {
    "Int[]": "ints",
    "Shape": "ints",
    "Float[]": "reals",
    "Tensor![]": "tensors",
    "Scheduler[]": "schedulers",
}
FIELDS = {
    "Tensor?": "tensor",
    "Optimizer": "optimizer",
    "Module": "module",
    "Module?": "module",
    "Float": "f[0]",
    "Float?": "f[0]",
    "Device": "device",
    "Device?": "device",
}
CASTS = {"Bool": "(int32_t)", "DType": "(tt_dtype)", "DType?": "(tt_dtype)"}


def value(a, at):
    """C expression of an argument's value."""
    cast = "(int32_t)" if a.enum else CASTS.get(a.type, "")
    return f"{cast}{at}.{FIELDS.get(a.type, 'i')}"


def option(cls, a, at):
    """Statements that set a field of the options."""
    if a.type in LISTS:
        return [f"o.{a.name} = {at}.{LISTS[a.type]};", f"o.n_{a.name} = {at}.n;"]
    if a.type == "Float[2]":
        return [f"o.{a.name}[0] = {at}.f[0];", f"o.{a.name}[1] = {at}.f[1];"]
    return [f"o.{a.name} = {value(a, at)};"]


def constructor(cls):
    lines = [f"static tt_status make_{cls.name}(const Given *a, void **out) {{"]
    if not cls.args:
        lines.append("  (void)a;")
    if cls.options:
        lines.append(f"  tt_{cls.name}_opts o = {{0}};")
    values = ["c"]
    for k, a in enumerate(cls.args):
        at = f"a[{k}]"
        if not a.positional:
            lines += [
                f"  if ({at}.given) {{",
                *(f"    {s}" for s in option(cls, a, at)),
                f"    o.set |= TT_{cls.name.upper()}_{a.name.upper()};",
                "  }",
            ]
        elif a.type in LISTS:
            values += [f"{at}.{LISTS[a.type]}", f"{at}.n"]
        else:
            values.append(value(a, at))
    values += ["&o"] * bool(cls.options) + [f"({cls.handle} **)out"]
    return "\n".join([*lines, f"  return tt_{cls.name}({', '.join(values)});", "}"])


def row(cls):
    kind = {"tt_module": "kLayer", "tt_optimizer": "kOptimizer", "tt_scheduler": "kScheduler"}[
        cls.handle
    ]
    inputs = sum(not x.endswith("?") for x in Layer(cls).inputs) if kind == "kLayer" else 0
    args = ", ".join(f'{{"{a.name}", "{a.type}", {int(a.default is not None)}}}' for a in cls.args)
    return f'{{"{cls.name}", "{cls.host}", {kind}, make_{cls.name}, {inputs}, {len(cls.args)}, {{{args or "{0}"}}}}},'


def class_rows(groups):
    found = [cls for group in groups.values() for cls in group]
    return (
        HEADER
        + "\n".join(map(constructor, found))
        + "\nstatic const Class kClasses[] = {\n"
        + "\n".join(map(row, found))
        + "\n};\n"
    )


def enum_calls(ops, groups):
    bodies = []
    rows = []
    functions = [*exported(ops), *classes.exported(groups)]
    for name, params, op in functions:
        for a in op.args:
            if not a.enum or not (a.positional or any("opts *" in p for p in params)):
                continue
            made = hostile("tt_status", name, params, op, wrong=a)
            if made:
                body, line = made
                bodies.append(body.replace(f"call_{name}(", f"enum_{name}_{a.name}("))
                rows.append(line.replace(f"call_{name},", f"enum_{name}_{a.name},"))
    return (
        HEADER
        + "\n".join(bodies)
        + "\nstatic const Function kEnumCalls[] = {\n"
        + "\n".join(rows)
        + "\n};\n"
    )


def generate(ops, groups):
    return {
        "tests/gen/class_rows.inc": class_rows(groups),
        "tests/gen/enum_calls.inc": enum_calls(ops, groups),
    }
