"""What the functions of the Python binding do: they check and convert their arguments and call
C."""
from codegen.c.ops import LISTS, c_name, forms
from codegen.cxx.ops import dst_names, operands
from codegen.model.schema import DeclError
from codegen.python.function import LEGACY_REDUCTION, NUMBER_LISTS, TENSOR, python_default

# what the functions take from _convert.py
CONVERT = (
    *(
        "boolean",
        "columns_of",
        "device_field",
        "dtype_code",
        "gathered",
        "generator_handle",
        "instance",
    ),
    *("int_list", "list_field", "integer", "is_int", "keeps", "is_number", "left_out", "length"),
    *("like", "no_overload", "number_form", "number_operand", "one_of", "optional_tensor"),
    *("refit", "written", "unreduced", "check_layout"),
    *("out_tensors", "pointers", "real", "scalar", "scalar_field", "tensor_address"),
    *("tensor_list", "text", "wrong_kind", "legacy_reduction", "sparse_product"),
)
TENSOR_TYPES = {"Tensor", "Tensor!", "Tensor?", "Tensor!?", "Tensor[]", "Tensor?[]"}
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
    "Tensor[]": LIST,
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
SCALARS = ("Scalar", "Scalar?")
SIMPLE |= {
    "Dim": SIMPLE["Int"],
    "Index": SIMPLE["Int"],
    "Dim?": SIMPLE["Int?"],
    "Index?": SIMPLE["Int?"],
    "DType?": SIMPLE["DType"],
    "Device?": SIMPLE["Device"],
}


def quoted(text):
    return f'"{text}"'


def indented(lines, depth=1):
    return ["    " * depth + line for line in lines]


def differs(arg, name):
    """Python condition: `name` is not the default of arg."""
    default = python_default(arg)
    if default in ("None", "True", "False") or arg.type == "MemoryFormat":
        return f"{name} is not {default}"
    if arg.enum:
        return f"{name} != {default}"
    kind = "float" if arg.type == "Float" else "int"
    return f"{name} != {default} or type({name}) is not {kind}"


def promotes(op, arg):
    """The argument is a tensor that takes part in promotion, no mask."""
    if not arg.is_tensor:
        return False
    loaded = operands(op)[0] if op.elementwise else []
    is_mask = arg.name in loaded and op.kernel.get("masks", 0) >> loaded.index(arg.name) & 1
    return not is_mask


def options_format(op):
    """The options struct for the struct module."""
    code = "Q"
    for arg in op.options:
        if arg.enum:
            code += "i"
        elif arg.type in NUMBER_LISTS:
            code += "Pq"
        else:
            code += SIMPLE[arg.type][2]
    return code + "0q"


def docstring(rows):
    """The lines of a docstring in a function."""
    lines = [f'    """{rows[0]}'] + [f"    {row}" if row else "" for row in rows[1:]]
    return [line.replace("\\", "\\\\") for line in [*lines, '    """']]


def emit(function):
    """The lines of a function: signature, docstring, body."""
    signature = function.signature(hinted=True, aliased=True)
    head = [f"def {function.name}({signature}) -> {function.returned()}:"]
    return head + docstring(function.doc()) + indented(guarded(function, Body(function).lines()))


def asking(call):
    """The first statement of a function: what intercepts the call returns instead."""
    return [
        "if switch.users:",
        f"    found = {call}",
        "    if found is not PLAIN:",
        "        return found",
    ]


def aliases(call):
    """The first statement of a function whose operands may be given by NumPy's names."""
    return ["if aliases:", f"    return {call}"]


def guarded(function, lines):
    """The statements of a function that modes may intercept, and objects with a __torch_function__
    among its tensors."""
    own = function.name
    if any(p.name == own for p in function.parameters):
        own = f'globals()["{own}"]'
    head = []
    if function.factors:
        call = f"factors_first({own}, locals(), {tuple(function.factors)!r})"
        head += ["if deprecated:", f"    return {call}"]
    head += aliases(f"renamed({own}, locals())") if function.aliased else []
    head += asking(f"intercepted({own}, locals())")
    if not any(p.of_some_type(TENSOR_TYPES) for p in function.parameters):
        return head + lines
    again = f"return retried({own}, locals())"
    out = [*head, "try:", *indented(lines), "except TypeError:", f"    {again}"]
    if function.byte_mask:
        again = f'return with_bool({own}, locals(), "{function.byte_mask}")'
        out += ["except DtypeError:", f"    {again}"]
    return out


class Body:
    """The statements of a function."""

    def __init__(self, function):
        self.function = function
        self.name = function.name
        self.forms = function.forms
        self.variant = function.variant
        self.positional = function.positional
        self.checked = set()  # locals that are known to be tensors

    def lines(self):
        out = (
            self.layout()
            + self.default_device()
            + self.gather()
            + self.move()
            + self.take_reserved()
            + self.read_legacy_reduction()
        )
        out += self.take_self()
        out += self.inplace() + self.bools() + self.further_names() + self.first_alone()
        for p in self.positional:
            out += self.check_tensor(p)
        for p in self.positional:
            out += self.read_strings(p)
        return out + self.columns() + self.choose_form()

    # ---- arguments ----

    def layout(self):
        """layout= of a function that makes tensors. pin_memory= changes nothing."""
        if not self.function.leaf:
            return []
        return ["if layout is not None:", f'    check_layout("{self.name}", layout)']

    def default_device(self):
        """The default device, for a function that makes tensors of no others."""
        takes_device = any(p.name == "device" for p in self.function.keywords)
        if not takes_device or any(p.of_types(TENSOR) for p in self.positional):
            return []
        absent = "device is None and out is None" if self.function.takes_out else "device is None"
        return [f"if {absent}:", "    device = local.device"]

    def gather(self):
        """A list that may be given as several arguments."""
        if not self.function.varargs:
            return []
        name = self.function.varargs.name
        plain = f"args and type(args[0]) is int and {name} is None"
        return [f'{name} = args if {plain} else gathered(args, {name}, "{self.name}", "{name}")']

    def move(self):
        """Arguments that take the place of those before if the first one is left out."""
        moved = [p for p in self.positional if p.moves]
        names = ", ".join(p.name for p in moved)
        lines = [f"{names} = left_out(0, {names})"] if names else []
        for p in moved:
            if p.of_types({"Size"}):  # the only kind whose conversion takes None
                wrong = f'wrong_kind("{self.name}", "{p.name}", "tuple of ints", {p.name})'
                lines += [f"if {p.name} is None:", f"    raise {wrong}"]
        return lines

    def take_reserved(self):
        lines = []
        for name in self.function.reserved:
            wrong = f"{self.name}() got an unexpected keyword argument {{got!r}}"
            lines += [
                f'{name} = kwargs.pop("{name[:-1]}", {name})',
                "if kwargs:",
                "    got = next(iter(kwargs))",
                f'    raise TypeError(f"{wrong}")',
            ]
        return lines

    def read_legacy_reduction(self):
        if not self.function.legacy_reduction:
            return []
        flags = ", ".join(LEGACY_REDUCTION)
        given = " or ".join(f"{name} is not None" for name in LEGACY_REDUCTION)
        return [f"if {given}:", f"    reduction = legacy_reduction({flags})"]

    def take_self(self):
        named = self.variant == "_" and self.positional[0].name == "input"
        return ["input = self"] if named else []

    def inplace(self):
        if not self.function.inplace_flag:
            return []
        return ["if inplace:", f"    return {self.name}_({', '.join(self.same_arguments())})"]

    def same_arguments(self, form=None):
        """The function's own arguments, or those that a form has, for a call with the same ones."""
        keywords = [
            f"{p.name}={p.name}" for p in self.function.keywords if form is None or form in p.slots
        ]
        positional = list(self.positional)
        while form is not None and positional and form not in positional[-1].slots:
            positional.pop()
        return [p.name for p in positional] + keywords

    def bools(self):
        """A bool in the place of the argument before the one that it means."""
        lines = []
        for before, p in zip(self.positional, self.positional[1:]):
            if p.any_slot("bool_of"):
                lines += [
                    f"if isinstance({before.name}, bool):",
                    f"    {before.name}, {p.name} = {before.default()}, {before.name}",
                ]
        return lines

    def further_names(self):
        pairs = [(p.name, other) for p in self.function.parameters for other in p.others]
        return [
            line
            for name, other in pairs
            for line in (f"if {other} is not None:", f"    {name} = {other}")
        ]

    def first_alone(self):
        if not self.function.alone:
            return []
        rest = " and ".join(f"{p.name} is None" for p in self.positional[1:])
        return [f"if {rest}:", *self.elsewhere(self.function.alone)]

    def check_tensor(self, p):
        """A parameter that must be a tensor: a subclass of Tensor keeps its class, a number may
        do."""
        given = p.required(self.forms) or p.missing or p.renamed
        if not given or not p.of_types(TENSOR):
            return []
        only_writes = all(form.op.void for form in self.forms)
        keeps_class = not self.checked and not self.variant and not only_writes
        self.checked.add(p.name)
        if keeps_class:
            lines = self.keep_class(p.name)
        else:
            lines = [f"if not isinstance({p.name}, Tensor):"]
        if p.any_slot("number") and not self.variant:
            made = f"{p.name} = number_operand({', '.join(self.number_arguments(p))})"
        elif self.forms[0].override("sparse_operands"):
            operands = ", ".join(q.name for q in self.positional)
            made = f'return sparse_product("{self.name}", "{p.name}", {operands})'
        else:
            made = f'raise wrong_kind("{self.name}", "{p.name}", "Tensor", {p.name})'
        return lines + indented([made], 2 if keeps_class else 1)

    def number_arguments(self, p):
        """What number_operand is given for a parameter."""
        others = [q for q in self.positional if q is not p]
        beside = [
            q.name
            for q in others
            if any(promotes(form.op, slot.arg) for form, slot in q.slots.items())
        ]
        given = [quoted(self.name), quoted(p.name), p.name, *beside]
        given.append(f"alone={not p.any_slot('beside')}")
        if any(form.override("number_must_fit") for form in p.slots):
            given.append("fit=True")
        floats = next(filter(None, (form.override("floats") for form in p.slots)), None)
        given += [f"floats={floats}"] if floats else []
        return given

    def keep_class(self, first):
        """The result of a call on a subclass of Tensor as that class."""
        function = self.function
        given = [
            name.replace(first, f"{first}.as_subclass(Tensor)") if name == first else name
            for name in self.same_arguments()
        ]
        given += ["requires_grad=requires_grad"] if function.leaf else []
        given += ["memory_format=memory_format"] if function.like else []
        given += [f"{function.columns}={function.columns}"] if function.columns else []
        no_out = " and out is None" if function.takes_out else ""
        return [
            f"if type({first}) is not Tensor:",
            f"    if keeps({first}){no_out}:",
            f"        return classed({self.name}({', '.join(given)}), type({first}))",
            f"    if not isinstance({first}, Tensor):",
        ]

    def read_strings(self, p):
        """The numbers that strings stand for; the first string is the default, as None is."""
        lines = []
        sign = f"if {p.name} is None or "
        for string, value in p.strings.items():
            lines.append(f"{sign}isinstance({p.name}, str) and {p.name} == {quoted(string)}:")
            lines += self.elsewhere(value) if "(" in value else [f"    {p.name} = {value}"]
            sign = "elif "
        return lines

    def elsewhere(self, call):
        """The rest of a branch that makes this call of another function."""
        return [f"    from . import {call.partition('(')[0]}", f"    return {call}"]

    def columns(self):
        flag = self.function.columns
        first = self.positional[0].name if self.positional else ""
        if not flag:
            return []
        return [f"if {flag}:", f"    return columns_of({self.name}, {first})"]

    # ---- forms ----

    def choose_form(self):
        if len(self.forms) == 1:
            return self.form_body(self.forms[0], self.checked)
        lines = []
        sign = "if"
        for form in self.forms:
            lines.append(f"{sign} {self.condition(form) or 'True'}:")
            tensors = {slot.var for slot in form.slots if slot.arg.type in TENSOR}
            lines += indented(self.form_body(form, self.checked | tensors))
            sign = "elif"
        names = ", ".join(p.name for p in self.positional)
        return lines + [f'raise no_overload("{self.name}", {names})']

    def condition(self, form):
        """Python condition: the arguments are those of this form."""
        tests = [self.test(form, p) for p in self.positional + self.function.keywords]
        return " and ".join(filter(None, tests))

    def test(self, form, p):
        slot = p.slots.get(form)
        if slot is None:
            return p.absent()
        several_kinds = len({s.arg.type for s in p.slots.values()}) > 1
        only_here = len(p.slots) < len(self.forms) and slot.required
        if not (several_kinds or only_here) or p.name in self.checked:
            return ""
        kind = slot.arg.type
        if kind not in TESTS:
            raise DeclError(
                f"{form.op.name}: forms of {self.name} cannot be told apart by "
                f"{slot.arg.name}: {kind}"
            )
        one_number_will_do = kind == "Int[]" and not slot.required
        return TESTS["Dims" if one_number_will_do else kind].format(p.name)

    def form_body(self, form, tensors):
        """tensors: locals that are known to be tensors."""
        function = self.function
        op = form.op
        copies = function.takes_out and "into" not in op.variants
        lines = self.keep_all(form)
        lines += self.copy_into_out(form) if copies else []
        lines += self.read_lists(form)
        if op.options and not op.no_opts:
            lines += self.read_options(form)
        if function.takes_out and not copies:
            lines.append("if out is not None:")
            lines += indented(self.check_out(op) + self.finish(form, tensors, "_into"))
        return lines + self.finish(form, tensors, self.variant)

    def keep_all(self, form):
        """An empty list of dimensions that reduces none."""
        if not form.override("empty_dims_keep"):
            return []
        dim = form.of["dim"].var
        return [
            f"if isinstance({dim}, (tuple, list)) and not {dim}:",
            f'    return unreduced({form.slots[0].var}, out, "{self.name}")',
        ]

    def copy_into_out(self, form):
        """out= of an operator that has no form of its own for it."""
        exact = self.exactness(form)
        return [
            "if out is not None:",
            f'    return written({self.call_without_out(form)}, out, "{self.name}"{exact})',
        ]

    def exactness(self, form):
        """The last argument of `written` and `refit`: out must have the dtype of the result if the
        operator demands it, always or under a condition, or the call names a dtype."""
        exact = form.override("exact_out")
        if exact:
            return f", {exact}"
        return ", dtype is not None" if "dtype=dtype" in self.same_arguments(form) else ""

    def call_without_out(self, form):
        """A call with the same arguments, but without out. Its device is out's by default, and so
        is its dtype, unless out must have the dtype of the result."""
        given = self.same_arguments(form)
        takes_dtype = len(form.op.outs) == 1 and not form.override("exact_out")
        if "dtype=dtype" in given and takes_dtype:
            given[given.index("dtype=dtype")] = "dtype=dtype or out.dtype"
        if "device=device" in given:
            given[given.index("device=device")] = "device=device or out.device"
        return f"{self.name}({', '.join(given)})"

    def read_lists(self, form):
        lines = []
        for slot in form.slots:
            if not slot.arg.positional:
                continue
            where = f'{slot.var}, "{self.name}", "{slot.name}"'
            if slot.arg.type in NUMBER_LISTS:
                lines.append(f"{slot.var}_c, {slot.var}_n = int_list({where})")
            elif slot.arg.type in LISTS:
                optional = ", True" if slot.arg.type == "Tensor?[]" else ""
                lines.append(f"{slot.var} = tensor_list({where}{optional})")
        return lines

    def read_options(self, form):
        has_lists = any(arg.type in NUMBER_LISTS for arg in form.op.options)
        return [
            "opts = None",
            f"if {self.unusual(form)}:",
            *(["    keep = []"] if has_lists else []),
            f"    opts = {self.options(form)}",
        ]

    def check_out(self, op):
        outs = dst_names(op)
        if len(outs) == 1:
            return [f'instance(Tensor, out, "{self.name}", "out")']
        return [f'{", ".join(outs)} = out_tensors(out, {len(outs)}, "{self.name}")']

    # ---- the call ----

    def finish(self, form, tensors, variant):
        """Calls C and gives the result."""
        op = form.op
        if variant == "_into":
            results = ["out"] if len(op.outs) == 1 else dst_names(op)
            exact = self.exactness(form)
            again = f'refit(out, lambda: {self.call_without_out(form)}, "{self.name}"{exact})'
            lines = self.calls(form, tensors, variant, results, f"return {again}")
            return lines + ["return out"]
        if variant == "_" or op.void:
            done = [f"return {form.slots[0].var}"]
            return self.calls(form, tensors, variant, []) + done
        if op.list_out:
            return self.list_call(form, tensors)
        if len(op.outs) == 1:
            call = self.calls(form, tensors, variant, ["byref(h)"])
            return ["h = TensorHandle()", *call, *self.one_result(form)]
        names = [f"h{place}" for place in range(len(op.outs))]
        made = f"{', '.join(names)} = {', '.join(['TensorHandle()'] * len(names))}"
        call = self.calls(form, tensors, variant, [f"byref({name})" for name in names])
        return [made, *call, *self.several_results(form, names)]

    def one_result(self, form):
        """The statements that return the tensor of h."""
        lists = [slot.var for slot in form.slots if slot.arg.type == "Tensor[]"]
        if self.function.leaf:
            lines = ["t = wrap(h)"]
            if self.function.like:
                lines.append("if memory_format is not None:")
                lines.append("    t = t.to(memory_format=memory_format)")
            return lines + ["return t.requires_grad_() if requires_grad else t"]
        if lists:
            first = lists[0]
            return [f"return like(wrap(h), {first})"]
        if form.override("returns_self"):
            return ["return wrap(h) if h._address != input._address else input"]
        return ["return wrap(h)"]

    def several_results(self, form, names):
        requested = form.override("results_on_request")
        if not requested:
            return [f"return _r_{form.op.name}(map(wrap, ({', '.join(names)})))"]
        flags = [
            form.of[requested[out.name]].var if out.name in requested else "True"
            for out in form.op.outs
        ]
        pairs = ", ".join(f"({name}, {flag})" for name, flag in zip(names, flags))
        return [
            f"found = tuple(wrap(h) for h, wanted in ({pairs}) if wanted)",
            "return found if len(found) > 1 else found[0]",
        ]

    def list_call(self, form, tensors):
        args = [quoted(c_name(form.op, "", "")), *self.arguments(form, tensors, None)]
        if form.op.options:
            args.append("opts")
        return [f"return listed({', '.join(args)})"]

    def calls(self, form, tensors, variant, results, failed="fail()"):
        """Lines that make the C call in the right form. failed: what follows a failure."""
        op = form.op

        def call(name, number, opts):
            args = ["local.ctx", *self.arguments(form, tensors, number), *opts, *results]
            return [f"if {name}({', '.join(args)}):", f"    {failed}"]

        short_opts = op.options and op.no_opts
        opts = ["opts"] if op.options and not op.no_opts else []
        if op.scalar_arg:
            usual = [self.number_form(form, variant), *call("call", "value", opts)]
        else:
            usual = call(c_name(op, "", variant), None, opts)
        if not short_opts:
            return usual
        suffix = "_ex"
        number = None
        if op.scalar_arg:
            slot = form.of[op.scalar_arg]
            suffix = "_scalar_ex"
            number = f"scalar({self.number_where(form, slot)})"
        extended = call(c_name(op, suffix, variant), number, [self.options(form)])
        return [f"if {self.unusual(form)}:", *indented(extended), "else:", *indented(usual)]

    def number_form(self, form, variant):
        """The C function for a float, an int or another number, and its value."""
        slot = form.of[form.op.scalar_arg]
        names = [c_name(form.op, suffix, variant) for suffix in ("_f64", "_i64", "_scalar")]
        where = f'{slot.var}, "{self.name}", "{slot.name}"'
        tensors = [other.var for other in form.slots if other.arg.type in TENSOR]
        beside = tensors[0] if tensors else None
        if beside is None and "dtype" in form.of:
            beside = form.of["dtype"].var
        where += f", {beside}" if beside else ""
        floats = "True" if form.op.get("dtype") == "float" else form.override("floats")
        where += f", {floats}" if beside and floats else ""
        return f"call, value = number_form({', '.join(names)}, {where})"

    def number_where(self, form, slot):
        """The arguments of scalar(): a number, its place, and the tensor beside it."""
        where = f'{slot.var}, "{self.name}", "{slot.name}"'
        tensors = [
            other.var
            for other in form.slots
            if other.arg.type in TENSOR and promotes(form.op, other.arg)
        ]
        return f"{where}, {tensors[-1]}" if tensors else where

    def arguments(self, form, tensors, number):
        """C arguments of the positional ones; number: that of the Scalar argument."""
        out = []
        for arg in form.op.positional:
            if arg.name == form.op.scalar_arg:
                out.append(number)
            else:
                out += self.argument(form, arg, tensors)
        return out

    def argument(self, form, arg, tensors):
        slot = form.of[arg.name]
        where = f'{slot.var}, "{self.name}", "{slot.name}"'
        if arg.type in SCALARS:
            where = self.number_where(form, slot)
        if arg.type in TENSOR:
            if slot.var not in tensors:
                raise DeclError(f"{form.op.name}: {arg.name} is not checked")
            return [slot.var]
        if arg.type in NUMBER_LISTS:
            return [f"{slot.var}_c", f"{slot.var}_n"]
        if arg.type in LISTS:
            return [f"pointers({slot.var})", f"length({slot.var})"]
        if arg.enum:
            return [f"one_of({arg.enum.upper()}, {where})"]
        if arg.type in SIMPLE and SIMPLE[arg.type][0]:
            return [SIMPLE[arg.type][0].format(where, slot.var)]
        raise DeclError(
            f"{form.op.name}: no Python form of the positional argument {arg.name}: {arg.type}"
        )

    # ---- options ----

    def unusual(self, form):
        """Python condition: an option is not at its default."""
        return " or ".join(differs(arg, form.of[arg.name].var) for arg in form.op.options)

    def options(self, form):
        """Python expression of the options struct, as bytes."""
        bits = []
        constant = 0
        fields = []
        for bit, arg in enumerate(form.op.options):
            var = form.of[arg.name].var
            if arg.default.strip() in ("None", "[]"):
                bits.append(f"({var} is not None) << {bit}" if bit else f"({var} is not None)")
            else:
                constant |= 1 << bit
            fields.append(self.option(form, arg))
        word = " | ".join(([str(constant)] if constant else []) + bits)
        return f"_o_{form.op.name}({', '.join([word, *fields])})"

    def option(self, form, arg):
        slot = form.of[arg.name]
        where = f'{slot.var}, "{self.name}", "{slot.name}"'
        if arg.type in SCALARS:
            where = self.number_where(form, slot)
        if arg.type in NUMBER_LISTS:
            return f"*list_field({where}, keep)"
        if arg.enum:
            return f"one_of({arg.enum.upper()}, {where})"
        return SIMPLE[arg.type][1].format(where, slot.var)
