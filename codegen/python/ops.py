"""The generated operators of the Python binding: bindings/python/tt/_ops, a module per family and an index of them.

One function per host name. Its forms (overloads) are told apart by the kinds of their arguments;
`self` is called `input`. What Python does in its own way: bindings/python/overrides.toml.
"""
import re
import textwrap
from keyword import iskeyword

from codegen.c.ops import LISTS, c_name, forms
from codegen.cxx.ops import api_name, dst_names, operands, variants_of
from codegen.model.schema import ENUMS, DeclError

# what the functions take from _convert.py
CONVERT = (
    "boolean",
    "device_field",
    "dtype_code",
    "gathered",
    "generator_handle",
    "instance",
    "int_list",
    "list_field",
    "integer",
    "is_int",
    "keeps",
    "is_number",
    "left_out",
    "length",
    "like",
    "no_overload",
    "number_form",
    "number_operand",
    "one_of",
    "optional_tensor",
    "out_tensors",
    "pointers",
    "real",
    "scalar",
    "scalar_field",
    "tensor_address",
    "tensor_list",
    "text",
    "wrong_kind",
)
KEYWORD_TYPES = {"DType", "DType?", "Device", "Device?", "Generator", "MemoryFormat"}
NUMBER_LISTS = {"Dims", "Size", "Shape", "Int[]", "Dims?"}
LIST = "isinstance({0}, (tuple, list))"
# schema type -> test that a Python value is of this kind, where forms differ
TESTS = {
    "Tensor": "isinstance({0}, Tensor)",
    "Tensor!": "isinstance({0}, Tensor)",
    "Tensor?": "({0} is None or isinstance({0}, Tensor))",
    "Scalar": "is_number({0})",
    "Scalar?": "({0} is None or is_number({0}))",
    "Float": "is_number({0})",
    "Int": "is_int({0})",
    "Dim": "is_int({0})",
    "Index": "is_int({0})",
    "Dims": "({0} is None or isinstance({0}, (tuple, list)) or is_int({0}))",
    "Int[]": LIST,
    "Str": "isinstance({0}, str)",
    "Size": LIST,
    "Shape": LIST,
}
# schema type -> (conversion of a positional argument, of a field, the field's format)
SIMPLE = {
    "Float": ("c_double(real({0}))", "real({0})", "d"),
    "Float?": ("", "0.0 if {1} is None else real({0})", "d"),
    "Int": ("c_int64(integer({0}))", "integer({0})", "q"),
    "Int?": ("", "0 if {1} is None else integer({0})", "q"),
    "Bool": ("boolean({0})", "boolean({0})", "i"),
    "Bool?": ("", "0 if {1} is None else boolean({0})", "i"),
    "DType": ("dtype_code({0})", "dtype_code({0})", "i"),
    "Device": ("", "*device_field({0})", "ii"),
    "MemoryFormat": (
        "instance(memory_format_class, {0}).code",
        "instance(memory_format_class, {0}).code",
        "i",
    ),
    "Generator": ("", "0 if {1} is None else generator_handle({0})._address", "P"),
    "Str": ("text({0})", "text({0})", "P"),
    "Tensor?": ("optional_tensor({0})", "tensor_address({0})", "P"),
    "Tensor!?": ("optional_tensor({0})", "", "P"),
    "Scalar": ("scalar({0})", "*scalar_field({0})", "0qiiqdd"),
    "Scalar?": ("None if {1} is None else scalar({0})", "*scalar_field({0})", "0qiiqdd"),
}
SIMPLE |= {
    "Dim": SIMPLE["Int"],
    "Index": SIMPLE["Int"],
    "Dim?": SIMPLE["Int?"],
    "Index?": SIMPLE["Int?"],
    "DType?": SIMPLE["DType"],
    "Device?": SIMPLE["Device"],
}


def python_default(a):
    d = a.default.strip()
    if d in ("None", "[]"):
        return "None"
    if a.enum:
        return "None" if d == '"none"' else d
    if a.type == "MemoryFormat":
        return f"{d}_format"
    return {"true": "True", "false": "False"}.get(d.lower(), d)


def differs(a, x):
    """Python condition: x is not the default of a."""
    d = python_default(a)
    if d in ("None", "True", "False") or a.type == "MemoryFormat":
        return f"{x} is not {d}"
    if a.enum:
        return f"{x} != {d}"
    return f"{x} != {d} or type({x}) is not {'float' if a.type == 'Float' else 'int'}"


def quoted(text):
    return f'"{text}"'


def promotes(op, arg):
    """The argument is a tensor that takes part in promotion, no mask."""
    ins = operands(op)[0] if op.elementwise else []
    return arg.is_tensor and not (
        arg.name in ins and op.kernel.get("masks", 0) >> ins.index(arg.name) & 1
    )


class Slot:
    """An argument of a form as Python sees it; `var` is the local name that holds it."""

    def __init__(self, op, arg, spelled):
        table = op.python
        self.arg, self.name = arg, table.get("names", {}).get(
            arg.name, "input" if arg.name == "self" else arg.name
        )
        self.name = spelled.get(arg.name, self.name)
        self.flag = (
            arg.name if table.get("bool_name", {}).get(arg.name) == self.name else None
        )  # its name as a number
        if iskeyword(self.name):
            self.name += "_"
        self.var = self.name
        rule = arg.default is not None and (
            arg.type in KEYWORD_TYPES or arg.type == "Scalar" and not arg.positional
        )
        self.keyword = (
            arg.name in table.get("keyword_only", [])
            or rule
            and arg.name not in table.get("also_positional", [])
        )
        self.required = arg.default is None
        self.beside = arg.name in table.get("number_beside_tensor", [])
        self.number = self.beside or arg.name in table.get("number_allowed", [])

    @property
    def default(self):
        return python_default(self.arg)


class Form:
    """One operator as an overload of a function."""

    def __init__(self, op, spelled=None):
        """spelled: in the place of what the table says for Python alone."""
        self.op = op
        table = op.python
        spelled = (
            {**table.get("python_names", {}), **table.get("bool_name", {})}
            if spelled is None
            else spelled
        )
        order = table.get("order", [])
        args = [op.arg(n) for n in order] + [a for a in op.args if a.name not in order]
        self.slots = [Slot(op, a, spelled) for a in args]
        self.positional = [s for s in self.slots if not s.keyword]
        self.keywords = [s for s in self.slots if s.keyword]
        self.of = {s.arg.name: s for s in self.slots}

    def table(self, key, default=None):
        return self.op.python.get(key, default)


class Parameter:
    """A parameter of the function: what its forms have in one place."""

    def __init__(self, name):
        self.name, self.slots, self.others = name, {}, []  # slots: form -> Slot
        self.moves, self.missing, self.words = (
            False,
            False,
            {},
        )  # moves: where first_optional is left out; missing: in a call of the first argument alone

    def add(self, form, slot):
        self.slots[form] = slot
        slot.var = self.name
        others = {slot.name, slot.flag or slot.name} - {self.name, *self.others}
        self.others += others

    def required(self, forms_):
        return (
            not (self.moves or self.missing)
            and len(self.slots) == len(forms_)
            and all(s.required for s in self.slots.values())
        )

    def default(self):
        if self.words:
            return repr(next(iter(self.words)))
        found = {s.default for s in self.slots.values() if not s.required and not self.moves}
        return found.pop() if len(found) == 1 else "None"

    def absent(self):
        return (
            f"{self.name} is {self.default()}"
            if self.default() in ("None", "True", "False")
            else f"{self.name} == {self.default()}"
        )


class Function:
    numpys = {
        "dim": "axis",
        "keepdim": "keepdims",
    }  # names of NumPy's that PyTorch takes, too, by keyword
    alone = property(
        lambda self: None if self.variant else self.forms[0].table("one_argument_call")
    )  # the call if only the first argument is given

    def __init__(self, name, forms_, variant=""):
        self.name, self.forms, self.variant = name, forms_, variant
        self.label = name
        self.places, self.lines = [], []
        self.merge()
        first = self.forms[0]
        self.varargs = None
        listed = {*NUMBER_LISTS, *(["Tensor[]"] if first.table("varargs") else [])}
        lists = [p for p in self.positional if all(s.arg.type in listed for s in p.slots.values())]
        if len(self.forms) == 1 and lists:
            p, force = lists[0], first.table("varargs")
            at = self.positional.index(p)
            leads = at == (1 if self.has_receiver(0) else 0)
            alone = not any(q.required(self.forms) for q in self.positional[at + 1 :])
            if force or (p.slots[first].arg.type == "Size" and leads and alone):
                self.varargs = p
        self.takes_out = not variant and any(
            "into" in f.op.variants or f.table("takes_out") or f.table("takes_requires_grad")
            for f in forms_
        )

    def has_receiver(self, at):
        return (
            bool(self.positional)
            and at < len(self.positional)
            and any(
                s.arg.name == "self" and s.arg.is_tensor for s in self.positional[at].slots.values()
            )
        )

    def receiver(self):
        return next((i for i in range(len(self.positional)) if self.has_receiver(i)), None)

    def merge(self):
        self.positional, self.keywords = [], []
        for form in self.forms:
            for i, slot in enumerate(form.positional):
                if i == len(self.positional):
                    self.positional.append(Parameter(slot.name))
                self.positional[i].add(form, slot)
            for slot in form.keywords:
                p = next((p for p in self.keywords if p.name == slot.name), None)
                if p is None:
                    p = Parameter(slot.name)
                    self.keywords.append(p)
                p.add(form, slot)
        names = [p.name.rstrip("_") for p in self.positional]
        left = self.forms[0].table("first_optional")
        for p in self.positional[names.index(left) :] if left in names else ():
            p.moves = p.required(self.forms) or p.name.rstrip("_") == left or p.default() == "None"
        for i, p in enumerate(self.positional):
            p.missing = i > 0 and bool(self.alone)
            p.words = (
                next(
                    (f.table("string_values", {}).get(s.arg.name, {}) for f, s in p.slots.items()),
                    {},
                )
                if self.numpys
                else {}
            )
            if p.name in self.numpys and not p.required(self.forms):
                p.others.append(self.numpys[p.name])

    # ---- signature and doc ----

    def signature(self):
        parts, opened = [], False
        for p in self.positional:
            if p is self.varargs:
                parts.append("*args")
                opened = True
                continue
            part = p.name if p.required(self.forms) and not opened else f"{p.name}={p.default()}"
            parts.append("self" if self.variant == "_" and p.name == "input" else part)
        if self.inplace_flag:
            parts.append("inplace=False")
        keys = [f"{other}=None" for p in self.positional for other in p.others]
        keys += [f"{p.name}={p.default()}" for p in self.keywords]
        keys += [f"{self.columns}=False"] if self.columns else []
        keys += ["out=None"] if self.takes_out else []
        keys += ["requires_grad=False"] if self.leaf else []
        if keys and not opened:
            parts.append("*")
        keys += [f"{self.varargs.name}=None"] if self.varargs else []
        return ", ".join(parts + keys + (["**kwargs"] if self.reserved else []))

    @property
    def reserved(self):
        """Parameters whose names Python reserves: `from_` is `from`."""
        return [p.name for p in self.positional if iskeyword(p.name[:-1])]

    @property
    def inplace_flag(self):
        return (
            not self.variant
            and "nn.functional" in places(self.forms)
            and any("inplace" in f.op.variants for f in self.forms)
        )

    @property
    def columns(self):
        return None if self.variant else self.forms[0].table("columns_flag")

    @property
    def leaf(self):
        return not self.variant and any(f.table("takes_requires_grad") for f in self.forms)

    def doc(self):
        shown = self.signature().replace(", **kwargs", "")
        if self.varargs:
            shown = shown.replace("*args", "*" + self.varargs.name).replace(
                f", {self.varargs.name}=None", ""
            )
        rows = [f"{self.name}({shown})", ""]
        texts = []
        for f in self.forms:
            text = " ".join(f.op.get("doc").split())
            if text not in texts:
                texts.append(text)
        if self.variant == "_":
            texts = ["In place: " + t for t in texts[:1]] + texts[1:]
        for t in texts:
            rows += textwrap.wrap(t, 110)
        if self.alone:
            rows.append(f"Of {self.positional[0].name} alone: {self.alone}.")
        if self.columns:
            rows.append(f"  {self.columns}: a tuple of the columns instead")
        seen = set()
        for f in self.forms:
            for s in f.slots:
                if s.arg.doc and s.name not in seen:
                    seen.add(s.name)
                    rows += textwrap.wrap(
                        f"{s.name}: {s.arg.doc}", 110, initial_indent="  ", subsequent_indent="    "
                    )
        return rows

    # ---- body ----

    def emit(self):
        rows = self.doc()
        out = [f"def {self.name}({self.signature()}):"]
        quoted = [f'    """{rows[0]}'] + [f"    {r}" if r else "" for r in rows[1:]] + ['    """']
        out += [q.replace("\\", "\\\\") for q in quoted]
        out += ["    " + line for line in self.body()]
        return out

    def body(self):
        lines = []
        if self.varargs:
            name = self.varargs.name
            lines.append(
                f'{name} = args if args and type(args[0]) is int and {name} is None else gathered(args, {name}, "{self.name}", "{name}")'
            )
        moving = ", ".join(p.name for p in self.positional if p.moves)
        if moving:
            lines.append(f"{moving} = left_out(0, {moving})")
        for name in self.reserved:
            lines += [
                f'{name} = kwargs.pop("{name[:-1]}", {name})',
                "if kwargs:",
                f'    raise TypeError(f"{self.name}() got an unexpected keyword argument {{next(iter(kwargs))!r}}")',
            ]
        if self.variant == "_" and self.positional[0].name == "input":
            lines.append("input = self")
        if self.inplace_flag:
            names = ", ".join(p.name for p in self.positional) + "".join(
                f", {p.name}={p.name}" for p in self.keywords
            )
            lines += ["if inplace:", f"    return {self.name}_({names})"]
        for before, p in zip(self.positional, self.positional[1:]):
            if any(s.flag for s in p.slots.values()):
                lines += [
                    f"if isinstance({before.name}, bool):",
                    f"    {before.name}, {p.name} = {before.default()}, {before.name}",
                ]
        for p in self.positional:
            for other in p.others:
                lines += [f"if {other} is not None:", f"    {p.name} = {other}"]
        if self.alone:
            lines += [
                f"if {' and '.join(f'{p.name} is None' for p in self.positional[1:])}:",
                *self.elsewhere(self.alone),
            ]
        checked = set()
        for p in self.positional:
            if (p.required(self.forms) or p.missing) and all(
                s.arg.type in ("Tensor", "Tensor!") for s in p.slots.values()
            ):
                keeps = not (checked or self.variant or all(f.op.void for f in self.forms))
                lines += (
                    self.keep_class(p.name) if keeps else [f"if not isinstance({p.name}, Tensor):"]
                )
                if any(s.number for s in p.slots.values()) and not self.variant:
                    beside = [
                        q.name
                        for q in self.positional
                        if q is not p and any(promotes(f.op, s.arg) for f, s in q.slots.items())
                    ]
                    given = [
                        quoted(self.name),
                        quoted(p.name),
                        p.name,
                        *beside,
                        f"alone={not any(s.beside for s in p.slots.values())}",
                    ]
                    given += (
                        ["fit=True"] if any(f.table("number_must_fit") for f in p.slots) else []
                    )
                    lines.append(
                        f'{"    " * (1 + keeps)}{p.name} = number_operand({", ".join(given)})'
                    )
                else:
                    lines.append(
                        f'{"    " * (1 + keeps)}raise wrong_kind("{self.name}", "{p.name}", "Tensor", {p.name})'
                    )
                checked.add(p.name)
        for p in self.positional:
            lines += self.read_words(p)
        if self.columns:
            first = self.positional[0].name
            lines += [
                f"if {self.columns}:",
                "    from . import reshape, unbind",
                f"    return unbind({self.name}({first} if {first}.ndim else reshape({first}, (1,))), 1)",
            ]
        if len(self.forms) == 1:
            return lines + self.form_body(self.forms[0], checked)
        for k, form in enumerate(self.forms):
            lines.append(f"{'el' if k else ''}if {self.condition(form, checked) or 'True'}:")
            typed = checked | {s.var for s in form.slots if s.arg.type in ("Tensor", "Tensor!")}
            lines += ["    " + line for line in self.form_body(form, typed)]
        return lines + [
            f'raise no_overload("{self.name}", {", ".join(p.name for p in self.positional)})'
        ]

    def read_words(self, p):
        """The numbers that words stand for; the default is None, too."""
        lines = []
        for k, (word, value) in enumerate(p.words.items()):
            lines.append(
                f"elif isinstance({p.name}, str) and {p.name} == {quoted(word)}:"
                if k
                else f"if {p.name} is None or isinstance({p.name}, str) and {p.name} == {quoted(word)}:"
            )
            lines += self.elsewhere(value) if "(" in value else [f"    {p.name} = {value}"]
        return lines

    def elsewhere(self, call):
        """The rest of a branch that makes this call of another function."""
        return [f"    from . import {call.partition('(')[0]}", f"    return {call}"]

    def keep_class(self, first):
        """The result of a call on a subclass of Tensor as that class."""
        given = [
            f"{p.name}.as_subclass(Tensor)" if p.name == first else p.name for p in self.positional
        ]
        given += (
            [f"{p.name}={p.name}" for p in self.keywords]
            + ["requires_grad=requires_grad"] * self.leaf
            + [f"{self.columns}={self.columns}"] * bool(self.columns)
        )
        return [
            f"if type({first}) is not Tensor:",
            f"    if keeps({first}){' and out is None' * self.takes_out}:",
            f"        return classed({self.name}({', '.join(given)}), type({first}))",
            f"    if not isinstance({first}, Tensor):",
        ]

    def condition(self, form, checked):
        tests = []
        for p in self.positional + self.keywords:
            slot = p.slots.get(form)
            if slot is None:
                tests.append(p.absent())
                continue
            kinds = {s.arg.type for s in p.slots.values()}
            differs = len(kinds) > 1 or len(p.slots) < len(self.forms) and slot.required
            if differs and p.name not in checked:
                if slot.arg.type not in TESTS:
                    raise DeclError(
                        f"{form.op.name}: forms of {self.name} cannot be told apart by {slot.arg.name}: {slot.arg.type}"
                    )
                kind = (
                    "Dims" if slot.arg.type == "Int[]" and not slot.required else slot.arg.type
                )  # a default: one int will do
                tests.append(TESTS[kind].format(p.name))
        return " and ".join(tests)

    def form_body(self, form, checked):
        op, lines = form.op, []
        stored = self.takes_out and "into" not in op.variants
        if stored:
            names = [p.name for p in self.positional] + [
                f"{p.name}={p.name}" for p in self.keywords
            ]
            lines += [
                "if out is not None:",
                "    from ._copy import clone",
                f'    return clone({self.name}({", ".join(names)}), out=out)',
            ]
        for s in form.slots:
            if s.arg.positional and s.arg.type in NUMBER_LISTS:
                lines.append(f'{s.var}_c, {s.var}_n = int_list({s.var}, "{self.name}", "{s.name}")')
            elif s.arg.positional and s.arg.type in LISTS:
                optional = ", True" if s.arg.type == "Tensor?[]" else ""
                lines.append(f'{s.var} = tensor_list({s.var}, "{self.name}", "{s.name}"{optional})')
        if op.options and not op.no_opts:
            keep = ["    keep = []"] if any(a.type in NUMBER_LISTS for a in op.options) else []
            lines += [
                "opts = None",
                f"if {self.unusual(form)}:",
                *keep,
                f"    opts = {self.options(form)}",
            ]
        if self.takes_out and not stored:
            outs = dst_names(op)
            lines.append("if out is not None:")
            if len(outs) == 1:
                lines.append(f'    instance(Tensor, out, "{self.name}", "out")')
            else:
                lines.append(
                    f'    {", ".join(outs)} = out_tensors(out, {len(outs)}, "{self.name}")'
                )
            lines += ["    " + line for line in self.finish(form, checked, "_into")]
        return lines + self.finish(form, checked, self.variant)

    def finish(self, form, checked, variant):
        """Calls C and gives the result."""
        op, lines = form.op, []
        if variant == "_into":
            results = ["out"] if len(op.outs) == 1 else dst_names(op)
            done = ["return out"]
        elif variant == "_" or op.void:
            results, done = [], [f"return {form.slots[0].var}"]
        elif op.list_out:
            return self.list_call(form, checked)
        elif len(op.outs) == 1:
            lines.append("t = new(Tensor)")
            results = ["byref(t)"]
            lists = [s.var for s in form.slots if s.arg.type == "Tensor[]"]
            done = [
                "return t.requires_grad_() if requires_grad else t"
                if self.leaf
                else f"return t if PLAIN.issuperset(map(type, {lists[0]})) else like(t, {lists[0]})"
                if lists
                else "return t if t._address != input._address else input"
                if form.table("returns_self")
                else "return t"
            ]
        else:
            ts = [f"t{i}" for i in range(len(op.outs))]
            lines.append(f"{', '.join(ts)} = {', '.join(['new(Tensor)'] * len(ts))}")
            results = [f"byref({t})" for t in ts]
            done = [f"return _r_{op.name}(({', '.join(ts)}))"]
            shown = form.table("results_on_request")
            if shown:
                flags = [form.of[shown[o.name]].var if o.name in shown else "True" for o in op.outs]
                pairs = ", ".join(f"({t}, {flag})" for t, flag in zip(ts, flags))
                done = [
                    f"found = tuple(t for t, wanted in ({pairs}) if wanted)",
                    "return found if len(found) > 1 else found[0]",
                ]
        return lines + self.calls(form, checked, variant, results) + done

    def list_call(self, form, checked):
        args = [quoted(c_name(form.op, "", ""))] + self.arguments(form, checked, None)
        if form.op.options:
            args.append("opts")
        return [f"return listed({', '.join(args)})"]

    def calls(self, form, checked, variant, results):
        """Lines that make the C call in the right form."""
        op = form.op
        rows = {suffix: takes for suffix, _, takes in forms(op)}
        number = form.of[op.scalar_arg] if op.scalar_arg else None

        def call(name, value, opts):
            args = ["local.ctx"] + self.arguments(form, checked, value) + opts + results
            return [f"if {name}({', '.join(args)}):", "    fail()"]

        if not number and not op.no_opts:
            return call(c_name(op, "", variant), None, ["opts"] if op.options else [])
        plain = []
        if number:
            named = [c_name(op, s, variant) for s in ("_f64", "_i64", "_scalar")]
            plain.append(
                f'call, value = number_form({", ".join(named)}, {number.var}, "{self.name}", "{number.name}")'
            )
            plain += call("call", "value", ["opts"] if rows.get("_f64") else [])
        else:
            plain += call(c_name(op, "", variant), None, [])
        if not (op.no_opts and op.options):
            return plain
        value = f'scalar({number.var}, "{self.name}", "{number.name}")' if number else None
        extended = call(
            c_name(op, "_scalar_ex" if number else "_ex", variant), value, [self.options(form)]
        )
        return (
            [f"if {self.unusual(form)}:"]
            + ["    " + r for r in extended]
            + ["else:"]
            + ["    " + r for r in plain]
        )

    def arguments(self, form, checked, number_value):
        out = []
        for a in form.op.positional:
            s = form.of[a.name]
            where = f'{s.var}, "{self.name}", "{s.name}"'
            if a.name == form.op.scalar_arg:
                out.append(number_value)
            elif a.type in ("Tensor", "Tensor!"):
                if s.var not in checked:
                    raise DeclError(f"{form.op.name}: {a.name} is not checked")
                out.append(s.var)
            elif a.type in NUMBER_LISTS:
                out += [f"{s.var}_c", f"{s.var}_n"]
            elif a.type in LISTS:
                out += [f"pointers({s.var})", f"length({s.var})"]
            elif a.enum:
                out.append(f"one_of({a.enum.upper()}, {where})")
            elif a.type in SIMPLE and SIMPLE[a.type][0]:
                out.append(SIMPLE[a.type][0].format(where, s.var))
            else:
                raise DeclError(
                    f"{form.op.name}: no Python form of the positional argument {a.name}: {a.type}"
                )
        return out

    def unusual(self, form):
        """Python condition: an option is not at its default."""
        return " or ".join(differs(a, form.of[a.name].var) for a in form.op.options)

    def options(self, form):
        """Python expression of the options struct, as bytes."""
        op, bits, constant, fields = form.op, [], 0, []
        for k, a in enumerate(op.options):
            s = form.of[a.name]
            where = f'{s.var}, "{self.name}", "{s.name}"'
            if a.default.strip() in ("None", "[]"):
                bits.append(f"({s.var} is not None) << {k}" if k else f"({s.var} is not None)")
            else:
                constant |= 1 << k
            if a.type in NUMBER_LISTS:
                fields.append(f"*list_field({where}, keep)")
                continue
            fields.append(
                f"one_of({a.enum.upper()}, {where})"
                if a.enum
                else SIMPLE[a.type][1].format(where, s.var)
            )
        word = " | ".join(([str(constant)] if constant else []) + bits)
        return f"_o_{op.name}({', '.join([word] + fields)})"


def struct_format(op):
    return (
        "Q"
        + "".join(
            "i" if a.enum else "Pq" if a.type in NUMBER_LISTS else SIMPLE[a.type][2]
            for a in op.options
        )
        + "0q"
    )


def places(forms_):
    for f in forms_:
        if f.table("in") is not None:
            return f.table("in")
    if forms_[0].op.host.endswith("_"):
        return ["Tensor"]
    return ["tt"] + (
        ["Tensor"] if any(f.op.arg("self") and f.op.arg("self").is_tensor for f in forms_) else []
    )
