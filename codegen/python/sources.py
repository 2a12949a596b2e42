"""What the sources of the Python binding define, as text of type stubs: signatures as they stand there, types by the tables below."""
import ast

# type -> parameters and attributes that have it
NAMES = {
    "Tensor": "input mask other source tensor total_norm vec",
    "_dtype": "dtype",
    "_device | _str | None": "device map_location",
    "_memory_format": "memory_format",
    "Sequence[_int]": "dims shape size",
    "Generator": "generator",
    "Module": "module",
    "Optimizer": "optimizer",
    "Parameter": "param",
    "_str": "filename name nonlinearity prefix schema target",
    "_bool": "is_complex is_floating_point is_signed requires_grad",
    "_int | Sequence[_int]": "dim",
    "_int": "bits count end last_epoch offset start step",
    "_float": "clip_value cpu_time cpu_time_total eps fill_value max_norm resolution self_cpu_time_total smallest_normal sparsity tiny val",
    "Tensor | Sequence[Tensor]": "grad_outputs grad_tensors outputs tensors",
    "Iterable[Any]": "params",
    "Tensor | Iterable[Tensor]": "parameters",
    "Callable[..., Any]": "closure compute fn hook lr_lambda see",
    "list[dict[_str, Any]]": "param_groups",
    "Sequence[_int] | _int": "output_size",
    "dict[_str, Any]": "defaults param_group state_dict",
    "list[_float]": "base_lrs",
}
# type -> functions and properties that give it; Class.name where a name is not enough
RETURNS = {
    "_int": "count data_ptr device_count dim element_size get_device get_num_threads initial_seed itemsize max_memory_allocated memory_allocated nbytes ndim "
    "numel seed storage_offset __hash__ __index__ __int__ __len__",
    "_str": "__format__ __repr__ __str__ build_info calculate instruction_set table extra_repr",
    "_bool": "allclose equal is_available requires_grad __bool__ __contains__ __eq__ is_tensor",
    "_float": "calculate_gain get_f64 __float__",
    "_complex": "__complex__",
    "Tensor": "as_tensor from_dlpack from_numpy frombuffer get_tensor scalar_tensor tensor clip_grad_norm_ constant_ dirac_ eye_ kaiming_normal_ "
    "kaiming_uniform_ get_total_norm linspace normal_ ones_ orthogonal_ parameters_to_vector random_ sparse_ std trunc_normal_ uniform_ "
    "vector_norm var xavier_normal_ xavier_uniform_ zeros_ arange randint randint_like einsum norm get_buffer upsample_bilinear upsample_nearest",
    "tuple[Tensor, Tensor]": "var_mean",
    "Tensor | None": "grad",
    "tuple[Tensor | None, ...]": "_handles.grad saved_tensors",
    "Tensor | tuple[Tensor, ...]": "nonzero",
    "Any": "__array__ __dlpack__ Tensor.as_subclass item numpy tolist unique __getattr__ untyped_storage",
    "_dtype": "dtype get_default_dtype to_complex",
    "_device": "device TensorHandle.device",
    "Size": "shape __add__ __radd__ __mul__ __rmul__",
    "tuple[_int, _int]": "__dlpack_device__ get_rng_state",
    "Mode": "no_grad enable_grad inference_mode",
    "set_grad_enabled": "set_detect_anomaly detect_anomaly",
    "Self": "__enter__ __new__ Module.bfloat16 Module.cpu Module.cuda Module.double Module.eval Module.float Module.half Module.to Module.to_empty Module.type",
    "HookHandle": "register_hook "
    "register_post_accumulate_grad_hook register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook",
    "Node | None": "grad_fn",
    "tuple[Tensor, Tensor | None]": "MultiheadAttention.forward",
    "Iterator[Tensor]": "Tensor.__iter__",
    "Iterator[Any]": "__iter__",
    "Iterator[Parameter]": "parameters",
    "Iterator[tuple[_str, Parameter]]": "named_parameters",
    "Iterator[Tensor] ": "buffers",
    "Iterator[tuple[_str, Tensor]]": "named_buffers",
    "Iterator[Module]": "children modules",
    "Iterator[tuple[_str, Module]]": "named_children named_modules",
    "Module": "get_submodule",
    "Parameter": "get_parameter",
    "dict[_str, Any]": "state_dict",
    "dict[_str, Tensor]": "load_file",
    "dict[_str, _int]": "memory_stats",
    "dict[_str, _str]": "metadata",
    "list[_str]": "keys",
    "list[dict[_str, Any]]": "live",
    "list[_float]": "get_last_lr get_lr base_lrs",
    "Op": "library.find",
    "_int ": "SafeTensorsHandle.find",
    "Generator": "manual_seed",
}
OVERLOADS = {  # what depends on the arguments given
    "TensorHandle.size": (("", "Size"), ("dim: _int", "_int")),
    "TensorHandle.stride": (("", "tuple[_int, ...]"), ("dim: _int", "_int")),
    "Tensor.type": (("", "_str"), ("dtype: _dtype, non_blocking: _bool = False", "Tensor")),
}
KNOWN = {  # name in a stub -> (module, name there)
    "Tensor": ("tt._tensor", "Tensor"),
    "Size": ("tt._types", "Size"),
    "_dtype": ("tt._types", "dtype"),
    "_device": ("tt._types", "device"),
    "_memory_format": ("tt._types", "memory_format"),
    "Generator": ("tt.random", "Generator"),
    "Parameter": ("tt.nn.parameter", "Parameter"),
    "Module": ("tt.nn.module", "Module"),
    "Optimizer": ("tt.optim.optimizer", "Optimizer"),
    "HookHandle": ("tt._hooks", "HookHandle"),
    "Node": ("tt.autograd.graph", "Node"),
    "_bool": ("builtins", "bool"),
    "_complex": ("builtins", "complex"),
    "_float": ("builtins", "float"),
    "_int": ("builtins", "int"),
    "_str": ("builtins", "str"),
    "AbstractContextManager": ("contextlib", "AbstractContextManager"),
    "ContextDecorator": ("contextlib", "ContextDecorator"),
    **{
        n: ("typing", n)
        for n in (
            "Any",
            "Callable",
            "Iterable",
            "Iterator",
            "Literal",
            "NamedTuple",
            "Sequence",
            "overload",
        )
    },
    "Self": ("typing_extensions", "Self"),
}
TYPE_OF = {n: kind.strip() for kind, names in NAMES.items() for n in names.split()}
RETURN_OF = {n: kind.strip() for kind, names in RETURNS.items() for n in names.split()}
BUILTIN = {
    "bool": "_bool",
    "int": "_int",
    "float": "_float",
    "str": "_str",
    "tuple": "tuple[Any, ...]",
    "list": "list[Any]",
    "dict": "dict[Any, Any]",
}
DECORATORS = ("property", "staticmethod", "classmethod", "setter", "deleter")
BASES = {"tuple": "tuple[Any, ...]", "dict": "dict[_str, Any]", "Handle": ""}


def optional(kind):
    return kind if kind == "Any" or "None" in kind else f"{kind} | None"


def type_of(name, default, known):
    """Of a parameter: known by the declarations, by its name, or by its default."""
    kind = known.get(name) or TYPE_OF.get(name)
    if kind is None and isinstance(default, ast.Constant):
        kind = BUILTIN.get(type(default.value).__name__)
    kind = kind or "Any"
    literal = (
        BUILTIN.get(type(default.value).__name__) if isinstance(default, ast.Constant) else None
    )
    if (
        literal in ("_str", "_int")
        and kind not in ("Any", "_float", "_complex")
        and literal not in kind
        or literal == "_str"
        and kind == "_float"
    ):
        kind = f"{kind} | {literal}"
    return optional(kind) if isinstance(default, ast.Constant) and default.value is None else kind


def shown(default):
    """Literals as they are, anything else as …"""
    try:
        ast.literal_eval(default)
    except ValueError:
        return "..."
    return ast.unparse(default)


def parameters(fn, known, method):
    """The text between the parentheses."""
    a, out = fn.args, []
    plain = a.posonlyargs + a.args
    defaults = [None] * (len(plain) - len(a.defaults)) + a.defaults

    def add(arg, default):
        kind = type_of(arg.arg, default, known)
        out.append(f"{arg.arg}: {kind}" + (f" = {shown(default)}" if default is not None else ""))

    for i, (arg, default) in enumerate(zip(plain, defaults)):
        if method and not i:
            out.append(arg.arg)
        else:
            add(arg, default)
    if a.vararg:
        out.append(f"*{a.vararg.arg}: Any")
    elif a.kwonlyargs:
        out.append("*")
    for arg, default in zip(a.kwonlyargs, a.kw_defaults):
        add(arg, default)
    return ", ".join(out + ([f"**{a.kwarg.arg}: Any"] if a.kwarg else []))


def returned(fn):
    """What the body itself says of its result; None: nothing."""
    inner = {
        id(y)
        for x in ast.walk(fn)
        if isinstance(x, (ast.FunctionDef, ast.Lambda)) and x is not fn
        for y in ast.walk(x)
    }
    nodes = [n for n in ast.walk(fn) if id(n) not in inner]
    values = [n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None]
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes):
        return "Iterator[Any]"
    if not values:
        raises = isinstance(fn.body[-1], ast.Raise)
        return "Any" if raises else "None"
    if all(isinstance(v, ast.Name) and v.id == "self" for v in values):
        return "Self"
    kinds = {
        BUILTIN.get(v.func.id)
        if isinstance(v, ast.Call) and isinstance(v.func, ast.Name)
        else "_str"
        if isinstance(v, ast.JoinedStr)
        else None
        for v in values
    }
    return kinds.pop() if len(kinds) == 1 else None


def function(fn, known=None, owner=None, home="", otherwise="Any"):
    """Lines of a function; owner: the class whose method it is; home: its module."""
    decorators = [
        d.attr if isinstance(d, ast.Attribute) else d.id
        for d in fn.decorator_list
        if isinstance(d, (ast.Name, ast.Attribute))
    ]
    kept = [ast.unparse(d) for d, name in zip(fn.decorator_list, decorators) if name in DECORATORS]
    known = {"other": "Any", **(known or {})} if fn.name.startswith("__") else known or {}
    text = parameters(fn, known, owner and "staticmethod" not in decorators)
    kind = (
        RETURN_OF.get(f"{owner}.{fn.name}")
        or RETURN_OF.get(f"{home}.{fn.name}")
        or RETURN_OF.get(fn.name)
        or returned(fn)
        or (TYPE_OF.get(fn.name) if "property" in decorators else None)
        or ("_bool" if fn.name.startswith("is_") else otherwise)
    )
    if "contextmanager" in decorators:
        kind = "AbstractContextManager[Any]"
    kind = (
        "None"
        if fn.name == "__init__" or decorators[-1:] == ["setter"] or decorators[-1:] == ["deleter"]
        else kind
    )
    return [f"@{d}" for d in kept] + [f"def {fn.name}({text}) -> {kind}: ..."]


def hidden(name):
    return (
        name.startswith("_")
        and not name.startswith("__")
        or name
        in (
            "__slots__",
            "__doc__",
            "__getstate__",
            "__setstate__",
            "__buffer__",
            "__init_subclass__",
            "__del__",
            "__dir__",
            "__reduce__",
        )
    )


def attributes(cls):
    """Names that __init__ assigns to self, slots, and fields of a namedtuple that is the base."""
    for base in cls.bases:
        if isinstance(base, ast.Call):
            yield from base.args[1].value.split()
    for fn in cls.body:
        if (
            isinstance(fn, ast.Assign)
            and getattr(fn.targets[0], "id", "") == "__slots__"
            and isinstance(fn.value, ast.Tuple)
        ):
            yield from (name.value for name in fn.value.elts)
        if isinstance(fn, ast.FunctionDef) and fn.name == "__init__":
            for s in ast.walk(fn):
                if isinstance(s, ast.Assign):
                    targets = [
                        t
                        for target in s.targets
                        for t in (target.elts if isinstance(target, ast.Tuple) else [target])
                    ]
                    yield from (
                        t.attr
                        for t in targets
                        if isinstance(t, ast.Attribute)
                        and isinstance(t.value, ast.Name)
                        and t.value.id == "self"
                    )


def class_value(name, value, cls, otherwise):
    """Lines of an assignment in a class."""
    if isinstance(value, ast.Name) and any(
        isinstance(s, ast.FunctionDef) and s.name == value.id for s in cls.body
    ):
        return [f"{name} = {value.id}"]
    if isinstance(value, ast.Attribute) and value.attr in RETURN_OF:  # a method of the base
        return [f"def {name}(self) -> {RETURN_OF[value.attr]}: ..."]
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "property":
        kind = (
            RETURN_OF.get(name)
            or TYPE_OF.get(name)
            or ("_bool" if name.startswith("is_") else otherwise)
        )
        setter = (
            [f"@{name}.setter", f"def {name}(self, value: {kind}) -> None: ..."]
            if len(value.args) > 1
            else []
        )
        return ["@property", f"def {name}(self) -> {kind}: ...", *setter]
    if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "deleter":
        return [f"@{name}.deleter", f"def {name}(self) -> None: ..."]
    kind = BUILTIN.get(type(value.value).__name__) if isinstance(value, ast.Constant) else None
    return [f"{name}: {kind or 'Any'}"]


def class_lines(cls, more=(), otherwise="Any"):
    """Lines of a class with those of `more` in it; otherwise: the result of methods that nothing else tells."""
    bases = [BASES.get(b.id, b.id) for b in cls.bases if isinstance(b, ast.Name)]
    body, done = [], set()
    inherited = dir(dict) if "dict[_str, Any]" in bases else ()
    methods = {s.name for s in cls.body if isinstance(s, ast.FunctionDef)}
    for name in attributes(cls):
        if not hidden(name) and name not in done | methods:
            done.add(name)
            body.append(f"{name}: {TYPE_OF.get(name, 'Any')}")
    for s in cls.body:
        if isinstance(s, ast.FunctionDef) and f"{cls.name}.{s.name}" in OVERLOADS:
            for taken, kind in OVERLOADS[f"{cls.name}.{s.name}"]:
                body += [
                    "@overload",
                    f"def {s.name}({', '.join(filter(None, ['self', taken]))}) -> {kind}: ...",
                ]
        elif isinstance(s, ast.FunctionDef) and not hidden(s.name) and s.name not in inherited:
            made = function(s, None, cls.name, otherwise=otherwise)
            if (
                any(bases) and cls.name != "Tensor" and made[0] == "@property"
            ):  # of the base it may be an attribute
                made = [f"{s.name}: {made[1].partition(' -> ')[2].removesuffix(': ...')}"]
            body += made
        elif isinstance(s, ast.Assign):
            for t in s.targets:
                names, values = (x.elts if isinstance(x, ast.Tuple) else [x] for x in (t, s.value))
                for name, value in zip(
                    names, values if len(values) == len(names) else [s.value] * len(names)
                ):
                    if isinstance(name, ast.Name) and not hidden(name.id) and name.id not in done:
                        done.add(name.id)
                        body += class_value(name.id, value, cls, otherwise)
    body += more
    head = (
        f"class {cls.name}({', '.join(b for b in bases if b)})"
        if any(bases)
        else f"class {cls.name}"
    )
    return [head + ":", *("    " + line for line in body)] if body else [head + ": ..."]


def made_by(tree, name):
    """The function of a module by that name, also where `a, b = maker(…), maker(…)` gives it: what the maker returns."""
    found = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    if name in found:
        return found[name]
    for s in tree.body:
        if isinstance(s, ast.Assign):
            names, values = (
                x.elts if isinstance(x, ast.Tuple) else [x] for x in (s.targets[0], s.value)
            )
            for n, v in zip(names, values):
                if getattr(n, "id", "") == name and isinstance(v, ast.Call):
                    return next(x for x in found[v.func.id].body if isinstance(x, ast.FunctionDef))
    return None
