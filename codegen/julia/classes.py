"""The classes of the Julia binding: bindings/julia/src/gen/<group>.jl, one function per class of
src/<group>/decl, and the module of that name that exports them. Arguments as those of operators
(julia.py).
"""
import textwrap

from codegen.c.ops import LISTS
from codegen.julia.ops import (
    KEYWORD_ONLY,
    Options,
    docstring,
    julia_default,
    kind,
    list_of,
    local,
    preserved,
    union,
)

MAKERS = {
    "tt_module": "own(Module, ",
    "tt_optimizer": "made_optimizer(",
    "tt_scheduler": "own(Scheduler, ",
}


class Constructor:
    def __init__(self, cls):
        self.cls = cls
        self.names = {a.name: local(a.name) for a in cls.args}
        keyword = set(cls.get("keyword", []))
        self.required = [a for a in cls.args if a.default is None]
        self.dual = []
        self.named = []
        for a in cls.args[len(self.required) :]:
            flagged = self.named or a.type in KEYWORD_ONLY or a.enum or a.name in keyword
            (self.named if flagged else self.dual).append(a)

    def type_of(self, a):
        if a.enum == "Activation":
            return "Union{AbstractString, Symbol, Base.Callable, Module}"
        return union(
            [kind(a)] + ["Nothing"] * (a.default is not None and julia_default(a) == "nothing")
        )

    def signature(self, shown=False):
        n = self.names
        parts = [n[a.name] if shown else f"{n[a.name]}::{self.type_of(a)}" for a in self.required]
        parts += [
            f"{n[a.name]}={julia_default(a)}" if shown else f"{n[a.name]}_={julia_default(a)}"
            for a in self.dual
        ]
        keys = [] if shown else [f"{n[a.name]}::{self.type_of(a)}={n[a.name]}_" for a in self.dual]
        keys += [
            f"{n[a.name]}={julia_default(a)}"
            if shown
            else f"{n[a.name]}::{self.type_of(a)}={julia_default(a)}"
            for a in self.named
        ]
        return ", ".join(parts) + ("; " + ", ".join(keys) if keys else "")

    def emit(self):
        cls = self.cls
        lines = [
            f"{x}_function, {x} = function_and_name({x})"
            for x in (self.names[a.name] for a in cls.args if a.enum == "Activation")
        ]
        args = []
        kept = []
        for a in cls.positional:
            x = self.names[a.name]
            if a.type in LISTS:
                lines.append(f"{x}_v = {list_of(a, x)}")
                kept += [f"{x}_v", x] if list_of(a, x).startswith("handles") else [f"{x}_v"]
                args += [f"{x}_v", f"length({x}_v)"]
            else:
                args.append({"Int": f"i64({x})", "Float": f"f64({x})"}.get(a.type, x))
        options = Options(cls, self.names)
        if cls.options:
            lines += options.prepare() + [f"opts = Ref({options.build()})"]
            kept += options.kept()
            args.append("opts")
        call = preserved(
            kept, f"handle_out(o -> C.tt_{cls.name}({', '.join(['ctx()'] + args + ['o'])}))"
        )
        first = (
            self.names[cls.args[0].name] if cls.args and cls.args[0].type == "Tensor![]" else None
        )
        make = MAKERS[cls.handle]
        if first:  # groups of parameters
            keys = ", ".join(
                f"{self.names[a.name]}::{self.type_of(a)}={julia_default(a)}" for a in cls.args[1:]
            )
            head = f"function {cls.host}({first}; {keys})"
            shown = f"{cls.host}({first}; {', '.join(f'{self.names[a.name]}={julia_default(a)}' for a in cls.args[1:])})"
            lines = [f"{first}, groups = grouped({first})"] + lines
            return (
                docstring(shown, [cls])
                + [head]
                + ["    " + x for x in lines]
                + [f"    h = {call}", f"    return {make}h, groups)", "end", ""]
            )
        return (
            docstring(f"{cls.host}({self.signature(True)})", [cls])
            + [f"function {cls.host}({self.signature()})"]
            + ["    " + x for x in lines]
            + [f"    return {self.made(f'{make}{call})')}", "end", ""]
        )

    def emit_lazy(self):
        """The constructor without the first argument, a size that the first input decides."""
        name = self.cls.host
        size, _, others = self.signature(True).partition(", ")
        text = (
            f"`{name}` with the `{size}` of the first input, or of a state that is loaded. Until "
            "then its parameters have the size 0; they remain the same tensors."
        )
        return [
            '"""',
            f"    Lazy{name}({others})",
            "",
            *textwrap.wrap(text, 100),
            '"""',
            f"Lazy{name}(args...; named...) = {name}(C.TT_NN_LAZY, args...; named...)",
            "",
        ]

    def made(self, text):
        for a in self.cls.args:
            if a.type == "Module":
                return f"stacked({text}, {self.names[a.name]})"
            if a.enum == "Activation":
                return f"with_activation!({text}, {self.names[a.name]}_function)"
        return text


def names_of_parts(classes):
    rows = {
        a.name: tuple(cls.get("names", {})[a.name])
        for cls in classes
        for a in cls.args
        if a.name in cls.get("names", {})
    }
    return "".join(
        f"    {k} = ({', '.join(f'{chr(34)}{v}{chr(34)}' for v in parts)}),\n"
        for k, parts in rows.items()
    )


def generate(groups):
    files = {}
    for group, classes in groups.items():
        out = [
            f"# Classes of libtt. Generated by codegen/gen.py from src/{group}/decl. Do not edit.",
            "",
        ]
        lazy = [c for c in classes if c.get("lazy")]
        for cls in classes:
            out += Constructor(cls).emit()
            out += Constructor(cls).emit_lazy() if cls in lazy else []
        if names_of_parts(classes):
            out += [
                "# Values whose halves have names of their own.",
                f"const {group.upper()}_PARTS = (\n{names_of_parts(classes)})",
                "",
            ]
        out += [
            f"const {group.upper()}_CLASSES = (",
            *(f"    :{c.host}," for c in classes),
            *(f"    :Lazy{c.host}," for c in lazy),
            ")",
            "",
        ]
        files[f"bindings/julia/src/gen/{group}.jl"] = "\n".join(out)
    return files
