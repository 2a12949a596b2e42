"""Functions of the Python binding: their parameters, signatures and docstrings.

One function per host name. Its forms (overloads) are told apart by the kinds of their arguments;
`self` is called `input`. What Python does in its own way: bindings/python/overrides.toml. body.py
writes what a function does; the Julia binding and the stubs are made from the same parameters.
"""
import re
import textwrap
from keyword import iskeyword

from codegen.python.kinds import kind_of, plain, union

KEYWORD_TYPES = {"DType", "DType?", "Device", "Device?", "Generator", "MemoryFormat"}
NUMBER_LISTS = {"Dims", "Size", "Shape", "Int[]", "Dims?"}
TENSOR = ("Tensor", "Tensor!")
DOC_WIDTH = 96
LEGACY_REDUCTION = ("size_average", "reduce")  # flags that PyTorch had before reduction


def python_default(arg):
    default = arg.default.strip()
    if default in ("None", "[]"):
        return "None"
    if arg.enum:
        return "None" if default == '"none"' else default
    if arg.type == "MemoryFormat":
        return f"{default}_format"
    return {"true": "True", "false": "False"}.get(default.lower(), default)


def wrapped(text, width, indent=""):
    """The lines of a paragraph."""
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def places(forms):
    """Where users find the function: in tt, as a method of Tensor, in nn.functional."""
    for form in forms:
        if form.override("in") is not None:
            return form.override("in")
    if forms[0].op.host.endswith("_"):
        return ["Tensor"]
    has_self = any(form.op.arg("self") and form.op.arg("self").is_tensor for form in forms)
    return ["tt", "Tensor"] if has_self else ["tt"]


class Slot:
    """An argument of a form as Python sees it.

    var           the local name that holds it
    bool_of       its own name, where `name` is the one that it has as a bool
    number        it is a tensor, but may be given as a number
    beside        the same, only beside a tensor
    """

    def __init__(self, op, arg, renamed):
        table = op.python
        plain = "input" if arg.name == "self" else arg.name
        name = renamed.get(arg.name, table.get("names", {}).get(arg.name, plain))
        as_bool = table.get("bool_name", {}).get(arg.name) == name
        self.arg = arg
        self.bool_of = arg.name if as_bool else None
        self.name = name + "_" if iskeyword(name) else name
        self.var = self.name
        self.required = arg.default is None
        self.keyword = self.by_keyword_only(table)
        self.beside = arg.name in table.get("number_beside_tensor", [])
        self.number = self.beside or arg.name in table.get("number_allowed", [])

    def by_keyword_only(self, table):
        arg = self.arg
        if arg.name in table.get("keyword_only", []):
            return True
        if self.required or arg.name in table.get("also_positional", []):
            return False
        return arg.type in KEYWORD_TYPES or (arg.type == "Scalar" and not arg.positional)

    @property
    def default(self):
        return python_default(self.arg)

    def shown(self, hinted=False):
        """The argument in a call, as users read it."""
        part = hinted_part if hinted else plain_part
        kind = kind_of(self.arg, self.number)
        return part(self.name, kind, None if self.required else self.default)


# types of arguments that None is not; of an empty list, the operators say what is wrong with it
NEVER_NONE = {"Tensor", "Int", "Index", "Float", "Scalar", "Shape", "Size"}


class Form:
    """One operator as an overload of a function."""

    def __init__(self, op, renamed=None):
        """renamed: instead of the names that the overrides have for Python alone."""
        self.op = op
        if renamed is None:
            renamed = {**op.python.get("python_names", {}), **op.python.get("bool_name", {})}
        order = op.python.get("order", [])
        args = [op.arg(name) for name in order]
        args += [arg for arg in op.args if arg.name not in order]
        self.slots = [Slot(op, arg, renamed) for arg in args]
        self.positional = [slot for slot in self.slots if not slot.keyword]
        self.keywords = [slot for slot in self.slots if slot.keyword]
        self.of = {slot.arg.name: slot for slot in self.slots}

    def override(self, key, default=None):
        return self.op.python.get(key, default)

    def in_python(self, text):
        """A text of the declaration, with Python's name of its first argument."""
        own = self.of.get("self")
        return re.sub(r"\bself\b", own.name, text) if own else text

    def shown_call(self, name, hinted=()):
        """A call of this form, as users read it; hinted: the parameters with a type hint."""
        parts = [slot.shown(slot.name in hinted) for slot in self.positional]
        if self.keywords:
            parts += ["*", *(slot.shown() for slot in self.keywords)]
        return f"{name}({', '.join(parts)})"


class Parameter:
    """A parameter of the function: what its forms have in one place.

    others   further names by which it may be given
    moves    it takes the place of the one before if first_optional is left out
    missing  it is left out in a call of the first argument alone
    renamed  it is required, but may be given by its other name, or follows one that may
    strings  what strings stand for, if it may be given as one
    """

    def __init__(self, name):
        self.name = name
        self.slots = {}  # form -> Slot
        self.others = []
        self.moves = False
        self.missing = False
        self.renamed = False
        self.strings = {}

    def add(self, form, slot):
        self.slots[form] = slot
        slot.var = self.name
        self.others += {slot.name, slot.bool_of or slot.name} - {self.name, *self.others}

    def required(self, forms):
        if self.moves or self.missing or self.renamed or len(self.slots) < len(forms):
            return False
        return all(slot.required for slot in self.slots.values())

    def default(self):
        if self.strings:
            return repr(next(iter(self.strings)))
        defaulted = [s for s in self.slots.values() if not s.required and not self.moves]
        found = {slot.default for slot in defaulted}
        return found.pop() if len(found) == 1 else "None"

    def kind(self):
        """The type hint of all its forms."""
        kinds = [kind_of(slot.arg, slot.number) for slot in self.slots.values()]
        kinds += ["_bool"] if self.any_slot("bool_of") else []
        return union(kinds + (["_str"] if self.strings else []))

    def absent(self):
        """Python condition: it is not given."""
        sign = "is" if self.default() in ("None", "True", "False") else "=="
        return f"{self.name} {sign} {self.default()}"

    def never_none(self):
        """Whether None is an error."""
        return all(slot.arg.type in NEVER_NONE or slot.arg.enum for slot in self.slots.values())

    def of_types(self, types):
        return all(slot.arg.type in types for slot in self.slots.values())

    def of_some_type(self, types):
        return any(slot.arg.type in types for slot in self.slots.values())

    def any_slot(self, what):
        return any(getattr(slot, what) for slot in self.slots.values())


def plain_part(name, _kind, default=None):
    return name if default is None else f"{name}={default}"


def hinted_part(name, kind, default=None):
    if default is None:
        return f"{name}: {plain(kind)}"
    return f"{name}: {plain(union([kind, 'None'] if default == 'None' else [kind]))} = {default}"


def ignored_kind(name):
    """The hint and the default of an ignored argument."""
    return ("Any", "None") if name == "layout" else ("_bool", "False")


class Function:
    """A function of the binding; variant "_": the one that works in place."""

    numpys = {"dim": "axis", "keepdim": "keepdims"}  # NumPy's names, taken by keyword, too
    operands = ("input", "other")  # the tensors that `x`, `x1`, `a` and `x2` may name, too

    def __init__(self, name, forms, variant=""):
        self.name = name
        self.forms = forms
        self.variant = variant
        self.positional = []
        self.keywords = []
        self.merge()
        self.mark()
        self.varargs = self.find_varargs()
        self.aliased = self.find_aliased()
        self.takes_out = not variant and any(self.form_takes_out(form) for form in forms)

    # ---- parameters ----

    @property
    def parameters(self):
        return self.positional + self.keywords

    def merge(self):
        """Positional arguments meet by place, the others by name."""
        for form in self.forms:
            for place, slot in enumerate(form.positional):
                if place == len(self.positional):
                    self.positional.append(Parameter(slot.name))
                self.positional[place].add(form, slot)
            for slot in form.keywords:
                found = next((p for p in self.keywords if p.name == slot.name), None)
                if not found:
                    found = Parameter(slot.name)
                    self.keywords.append(found)
                found.add(form, slot)

    def mark(self):
        """What overrides say of the parameters."""
        names = [p.name.rstrip("_") for p in self.positional]
        first = self.forms[0].override("first_optional")
        for p in self.positional[names.index(first) :] if first in names else ():
            is_first = p.name.rstrip("_") == first
            p.moves = p.required(self.forms) or is_first or p.default() == "None"
        for place, p in enumerate(self.positional):
            p.missing = place > 0 and bool(self.alone)
            if self.numpys:
                p.strings = self.strings_of(p)
            p.renamed = p.renamed or self.takes_axis(p, place) or self.takes_other_name(p, place)
            for q in self.positional[place + 1 :] if p.renamed else ():
                q.renamed = q.renamed or q.required(self.forms)
        for p in self.parameters:
            if p.name in self.numpys and not p.required(self.forms):
                p.others.append(self.numpys[p.name])

    def takes_axis(self, p, place):
        """Whether p is required and has a name of NumPy's, too. Required arguments behind it are
        then given by keyword; their kinds must be such that None, if one is missing, is an error.
        """
        if not place or p.name not in self.numpys:
            return False
        behind = [q for q in self.positional[place + 1 :] if q.required(self.forms)]
        return p.required(self.forms) and all(q.never_none() for q in behind)

    def takes_other_name(self, p, place):
        """Whether p is required and has another name in another form; None fits no form."""
        return place > 0 and bool(self.numpys and p.others) and p.required(self.forms)

    def find_aliased(self):
        """The places of arguments from the first operand on that may be given by a name of NumPy's:
        those that are required have a default that the body refuses."""
        if not self.numpys or self.reserved or self.forms[0].op.host.endswith("_"):
            return range(0)
        own = self.operands[1:] if self.variant else self.operands
        count = len(self.positional)
        first = next((i for i in range(count) if self.is_operand(i, own)), count)
        return range(first, count)

    def is_operand(self, place, names):
        p = self.positional[place]
        needed = p.required(self.forms) or p.missing
        return p.name in names and needed and p.of_some_type(TENSOR)

    def strings_of(self, p):
        for form, slot in p.slots.items():
            return form.override("string_values", {}).get(slot.arg.name, {})
        return {}

    def find_varargs(self):
        """The list that may be given as several arguments, if there is one."""
        forced = self.forms[0].override("varargs")
        types = {*NUMBER_LISTS, "Tensor[]"} if forced else NUMBER_LISTS
        lists = [p for p in self.positional if p.of_types(types)]
        if len(self.forms) > 1 or not lists:
            return None
        found = lists[0]
        place = self.positional.index(found)
        leads = place == int(self.is_receiver(0))
        last = not any(p.required(self.forms) for p in self.positional[place + 1 :])
        is_size = found.slots[self.forms[0]].arg.type == "Size"
        return found if forced or (is_size and leads and last) else None

    def form_takes_out(self, form):
        extra = form.override("takes_out") or form.override("takes_requires_grad")
        return bool(extra) or "into" in form.op.variants

    def is_receiver(self, place):
        if place >= len(self.positional):
            return False
        slots = self.positional[place].slots.values()
        return any(slot.arg.name == "self" and slot.arg.is_tensor for slot in slots)

    def receiver(self):
        """The place of `self`, None if there is none."""
        places_ = range(len(self.positional))
        return next((place for place in places_ if self.is_receiver(place)), None)

    @property
    def alone(self):
        """The call that is made if only the first argument is given."""
        return None if self.variant else self.forms[0].override("one_argument_call")

    @property
    def reserved(self):
        """Parameters whose names Python reserves: `from_` is `from`."""
        return [p.name for p in self.positional if iskeyword(p.name[:-1])]

    @property
    def factors(self):
        """Numbers that PyTorch's deprecated form takes by position, before the tensors that they
        multiply."""
        return self.forms[0].override("deprecated_factors", [])

    @property
    def inplace_flag(self):
        """It takes inplace=, as functions of nn.functional do."""
        if self.variant or "nn.functional" not in places(self.forms):
            return False
        return any("inplace" in form.op.variants for form in self.forms)

    @property
    def columns(self):
        return None if self.variant else self.forms[0].override("columns_flag")

    @property
    def leaf(self):
        """It makes leaves, and takes requires_grad=."""
        return not self.variant and any(f.override("takes_requires_grad") for f in self.forms)

    @property
    def like(self):
        """It takes memory_format=: it makes a tensor like another one, or the overrides say so."""
        named = self.forms[0].override("takes_memory_format")
        return self.leaf and bool(named or self.name.endswith("_like"))

    @property
    def ignored(self):
        """Flags of PyTorch that change nothing."""
        return [] if self.variant else self.forms[0].override("ignored", [])

    @property
    def byte_mask(self):
        """The mask that may be uint8, as PyTorch's may, with a warning."""
        return self.forms[0].override("byte_mask")

    @property
    def legacy_reduction(self):
        """It takes the flags that PyTorch had before the argument reduction."""
        return bool(self.forms[0].override("legacy_reduction"))

    # ---- text ----

    def signature(self, hinted=False, aliased=False):
        """The parameters, with type hints if hinted, with NumPy's names of operands if aliased."""
        part = hinted_part if hinted else plain_part
        parts = []
        opened = False
        for place, p in enumerate(self.positional):
            if p is self.varargs:
                parts.append(part("*args", "Any"))
                opened = True
            elif self.variant == "_" and p.name == "input":
                parts.append(part("self", "Tensor"))
            elif p.required(self.forms) and not opened:
                absent = "REQUIRED" if aliased and place in self.aliased else None
                parts.append(part(p.name, p.kind(), absent))
            else:
                parts.append(part(p.name, p.kind(), p.default()))
        if self.inplace_flag:
            parts.append(part("inplace", "_bool", "False"))
        keys = self.keyword_parts(part)
        if keys and not opened:
            parts.append("*deprecated: Any" if hinted and self.factors else "*")
        keys += [part(self.varargs.name, self.varargs.kind(), "None")] if self.varargs else []
        keys += [part("**kwargs", "Any")] if self.reserved else []
        keys += [part("**aliases", "Any")] if aliased and self.aliased else []
        return ", ".join(parts + keys)

    def keyword_parts(self, part):
        keys = [part(other, p.kind(), "None") for p in self.parameters for other in p.others]
        keys += [part(p.name, p.kind(), p.default()) for p in self.keywords]
        keys += [part(self.columns, "_bool", "False")] if self.columns else []
        several = len(self.forms[0].op.outs) > 1
        out = "tuple[Tensor, ...]" if several else "Tensor"
        keys += [part("out", out, "None")] if self.takes_out else []
        keys += [part(name, *ignored_kind(name)) for name in self.ignored]
        if self.legacy_reduction:
            keys += [part(name, "_bool | None", "None") for name in LEGACY_REDUCTION]
        keys += [part("memory_format", "Any", "None")] if self.like else []
        if self.leaf:
            keys += [part("layout", "Any", "None"), part("pin_memory", "_bool", "False")]
            keys.append(part("requires_grad", "_bool", "False"))
        return keys

    def returned(self):
        """The type hint of the result."""
        if self.columns:
            return "Tensor | tuple[Tensor, ...]"
        if any(form.override("results_on_request") for form in self.forms):
            return "Any"
        kinds = []
        for form in self.forms:
            many = not self.variant and (form.op.list_out or len(form.op.outs) > 1)
            kinds.append("tuple[Tensor, ...]" if many else "Tensor")
        return union(kinds)

    def shown_signature(self):
        """The signature as users read it."""
        shown = self.signature().replace(", **kwargs", "")
        if self.varargs:
            shown = shown.replace("*args", "*" + self.varargs.name)
            shown = shown.replace(f", {self.varargs.name}=None", "")
        return f"{self.name}({shown})"

    def doc(self, width=DOC_WIDTH):
        """The lines of the docstring."""
        texts = {}  # of each form that has one of its own
        for form in self.forms:
            texts.setdefault(form.in_python(" ".join(form.op.get("doc").split())), form)
        rows = [self.shown_signature(), ""]
        for text, form in texts.items():
            if self.variant == "_" and form is self.forms[0]:
                text = f"In place: {text[0].lower()}{text[1:]}"
            if len(texts) > 1:
                rows += [*wrapped(self.call_of(form), width), *wrapped(text, width, "  ")]
            else:
                rows += wrapped(text, width)
        if self.alone:
            rows.append(f"Of {self.positional[0].name} alone: {self.alone}.")
        if self.columns:
            rows.append(f"  {self.columns}: a tuple of the columns instead")
        return rows + self.argument_docs(width)

    def call_of(self, form):
        """A call of one of several forms, with the types that tell it from the others where names
        do not."""
        names = [tuple(slot.name for slot in f.slots) for f in self.forms]
        if names.count(names[self.forms.index(form)]) == 1:
            return form.shown_call(self.name)
        kinds = {}
        for slot in (slot for f in self.forms for slot in f.slots):
            kinds.setdefault(slot.name, set()).add(kind_of(slot.arg, slot.number))
        return form.shown_call(self.name, [name for name in kinds if len(kinds[name]) > 1])

    def argument_docs(self, width):
        docs = {}
        for form in self.forms:
            for slot in form.slots:
                if slot.arg.doc:
                    docs.setdefault(slot.name, form.in_python(slot.arg.doc))
        rows = []
        for name, text in docs.items():
            rows += textwrap.wrap(
                f"{name}: {text}",
                width,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
        return rows
