"""Nodes, autograd wrappers and op objects: src/autograd/gen/<family>.cpp."""
import re

from codegen.cxx import forward
from codegen.cxx.ops import (
    HEADER,
    ROOT,
    api_name,
    cpp_default,
    dst_names,
    families,
    impl_name,
    names,
    params,
    sig,
    variant_names,
    variant_params,
    variants_of,
)
from codegen.model.expr import Emitter
from codegen.model.flops import Flops
from codegen.model.schema import DeclError, formula_functions

# the members of the struct that a formula of several gradients returns
MEMBERS = ("first", "second", "third", "fourth", "fifth", "sixth")
FACTS = {
    "shape": ("Shape", "Ints(s.{0}_shape)", "Shape({0}.sizes())"),
    "dtype": ("Dtype", "s.{0}_dtype", "{0}.dtype"),
    "device": ("Device", "s.{0}_device", "{0}.device"),
    "ndim": ("int64_t", "s.{0}_ndim", "{0}.ndim"),
    "strides": ("Shape", "Ints(s.{0}_strides)", "Shape({0}.strides())"),
    "offset": ("int64_t", "s.{0}_offset", "{0}.offset()"),
    "shapes": ("ShapeList", "s.{0}_shapes", "shapes_of({0})"),
}
# how a non-tensor argument is kept
KEEP = {
    "const Scalar&": "Scalar",
    "const Scalar*": "SavedScalar",
    "Ints": "Shape",
    "Opt<Ints>": "SavedInts",
    "Indices": "SavedIndices",
    "const Rng&": "Rng",
}
# type of a saved value -> its SavedKind (autograd/saved_values.h)
KINDS = {
    "Saved": "t",
    "SavedList": "l",
    "Shape": "s",
    "SavedInts": "S",
    "ShapeList": "h",
    "Scalar": "n",
    "SavedScalar": "N",
    "int64_t": "i",
    "Opt<int64_t>": "I",
    "double": "f",
    "Opt<double>": "F",
    "bool": "b",
    "Dtype": "d",
    "Device": "v",
    "Rng": "r",
}
# without a destructor
PLAIN = {"bool", "double", "int64_t", "Opt<double>", "Opt<int64_t>", "Dtype", "Device", "Scalar"}


def diff_inputs(op):
    """Differentiable inputs in schema order; the edge of input i is i."""
    keys = {n: (joined, expr) for joined, expr in op.grad.items() for n in joined.split(",")}
    return [a for a in op.args if a.name in keys], keys


class Formula:
    """The gradient formulas of one operator: the values that they read, and their C++."""

    def __init__(self, op, ops):
        self.op = op
        self.inputs, keys = diff_inputs(op)
        self.list_input = len(self.inputs) == 1 and self.inputs[0].type in ("Tensor[]", "Tensor?[]")
        if any(a.type.endswith("[]") for a in self.inputs) and not self.list_input:
            raise DeclError(f"{op.name}: a tensor list must be the only differentiable input")
        functions = formula_functions(ROOT)
        self.args = set()
        self.facts = set()
        self.results = set()
        self.blocks = []  # (input indices, expression C++, Uses)
        self.expressions = {name: expr for name, (_, expr) in keys.items()}
        done = set()
        for i, a in enumerate(self.inputs):
            joined, expr = keys[a.name]
            if joined in done:
                continue
            done.add(joined)
            e = Emitter(
                op,
                ops,
                functions,
                lambda n: "all_grads" if n == "grads" else n,
                lambda n, f: FACTS[f][1].format(n),
            )
            code = e.emit(expr).replace("needs(", "n.needs(")
            members = [self.inputs.index(op.arg(n)) for n in joined.split(",")]
            self.blocks.append((members, code, e.uses))
            self.args |= e.uses.args - {"grads"}
            self.facts |= e.uses.facts
            self.results |= e.uses.results
        self.tensor_args = [a for a in op.args if a.name in self.args and a.is_tensorish]
        self.value_args = [a for a in op.args if a.name in self.args and not a.is_tensorish]

    def inputs_that_need_grad(self):
        """A condition for each input."""
        return [needs_grad(a.name) for a in self.inputs]

    def members(self):
        """(type, name) of what the node saves: tensors, then shapes, then lists of shapes, then the
        rest."""
        found = [
            ("SavedList" if a.type.endswith("[]") else "Saved", a.name) for a in self.tensor_args
        ]
        found += [(KEEP.get(a.cpp, a.cpp), a.name) for a in self.value_args]
        found += [(FACTS[f][0], f"{n}_{f}") for n, f in sorted(self.facts)]
        found += [("Saved", f"r{i}") for i in sorted(self.results)]
        first = ("Saved", "Shape", "ShapeList")
        return sorted(found, key=lambda m: first.index(m[0]) if m[0] in first else len(first))

    def member_text(self):
        """The kinds and names of the members, as applications read them (saved_values.h). Results
        have their names in the schema, that of a single one is "result"."""
        outs = self.op.outs
        results = {f"r{i}": "result" if len(outs) == 1 else o.name for i, o in enumerate(outs)}
        return ",".join(KINDS[kind] + results.get(name, name) for kind, name in self.members())

    def struct(self):
        lines = [f"struct {self.op.name}_saved {{"]
        return lines + [f"  {kind} {name};" for kind, name in self.members()] + ["};"]

    def destroy(self):
        """The destructor of what is saved: one for all with as many tensors and shapes. The engine
        knows those without tensors (engine.cpp)."""
        kinds = [kind for kind, _ in self.members()]
        if set(kinds) <= {"Saved", "Shape"} | PLAIN:
            return f"destroy_parts<{kinds.count('Saved')}, {kinds.count('Shape')}>"
        if kinds[0] == "ShapeList" and set(kinds[1:]) <= PLAIN:
            return "destroy_saved<ShapeList>"
        return f"destroy_saved<{self.op.name}_saved>"

    def apply(self):
        op = self.op
        lines = [
            f"static void {op.name}_apply(Node& n, [[maybe_unused]] TensorRef* grads, TensorRef* out) {{",
            "  check_not_released(n);",
            f"  [[maybe_unused]] auto& s = n.saved_as<{op.name}_saved>();",
        ]
        for members, code, uses in self.blocks:
            cond = "true" if self.list_input else " || ".join(f"n.needs({i})" for i in members)
            lines.append(f"  if ({cond}) {{")
            lines += self.locals(uses)
            if self.list_input:
                lines.append(f"    TensorList r = {code};")
                lines.append(
                    "    for (int64_t i = 0; i < n.n_edges; i++) out[i] = std::move(r[i]);"
                )
            elif len(members) == 1:
                shared = f"TensorRef::share(&{code})" if re.fullmatch(r"[gr]\d+", code) else code
                lines.append(f"    out[{members[0]}] = {shared};")
            else:
                lines.append(f"    auto r = {code};")
                lines += [f"    out[{m}] = std::move(r.{p});" for m, p in zip(members, MEMBERS)]
            lines.append("  }")
        return lines + ["}"]

    def locals(self, uses):
        lines = []
        for a in self.op.args:
            if a.name not in uses.args:
                continue
            if a.type.endswith("[]") and a.is_tensorish:
                lines += [
                    f"    TensorList {a.name}_refs;",
                    f"    s.{a.name}.get(n, {a.name}_refs);",
                    f"    const Borrowed {a.name}({a.name}_refs);",
                ]
            elif a.type == "Tensor?":
                lines += [
                    f"    const TensorRef {a.name}_ref = s.{a.name}.get_opt(n);",
                    f"    const Tensor* {a.name} = {a.name}_ref.get();",
                ]
            elif a.is_tensor:
                lines += [
                    f"    const TensorRef {a.name}_ref = s.{a.name}.get(n);",
                    f"    const Tensor& {a.name} = *{a.name}_ref;",
                ]
            else:
                lines.append(f"    const auto& {a.name} = s.{a.name};")
        lines += [
            f"    const TensorRef r{i}_ref = s.r{i}.get(n);\n    const Tensor& r{i} = *r{i}_ref;"
            for i in sorted(uses.results)
        ]
        lines += [f"    const Tensor& g{i} = *grads[{i}];" for i in sorted(uses.grads)]
        if "grads" in uses.args:
            lines.append("    const GradList all_grads(grads, n.n_outs);")
        return lines

    def when(self, kind, what):
        """The condition of a statement that saves an argument or a result: that a formula which
        reads it will run. Empty if that is certain."""
        readers = sorted(
            {m for members, _, uses in self.blocks if what in getattr(uses, kind) for m in members}
        )
        if self.list_input or len(readers) == len(self.inputs):
            return ""
        return f"if ({' | '.join(f'n{i}' for i in readers)}) "

    def save(self, variant):
        """Statements that fill `s` before the computation."""
        lines = []
        for a in self.tensor_args:
            self_arg = self.op.args[0]
            value = f"*overwritten({a.name})" if variant == "_" and a is self_arg else a.name
            lines.append(f"  {self.when('args', a.name)}s.{a.name}.save({value});")
        lines += [
            f"  s.{a.name} = {KEEP[a.cpp] + '(' + a.name + ')' if a.cpp in KEEP else a.name};"
            for a in self.value_args
        ]
        lines += [f"  s.{n}_{f} = {FACTS[f][2].format(n)};" for n, f in sorted(self.facts)]
        return lines


def wrapper(op, f, v):
    """The Autograd slot of a variant."""
    ps = ", ".join(["Call c"] + variant_params(op, v))
    pass_on = (
        f"redispatch(op_{op.name}{v}, c.keys & kBelowAutograd, {', '.join(variant_names(op, v))})"
    )
    ret, _ = sig(op, v)
    lines = [f"static {ret} {op.name}{v}_autograd({ps}) {{"]
    if v == "_":
        lines.append(f"  check_tracked({op.args[0].name});")
    lines += unless_recorded(op, f, pass_on)
    if op.list_out and not v:
        return lines + list_tail(op, f, pass_on) + ["}"]
    n_edges = f"{f.inputs[0].name}.n" if f.list_input else str(len(f.inputs))
    lines += [
        f"  NodeRef node = new_node(&{op.name}_type, {n_edges}, {max(1, len(op.outs))});",
        "  Node& n = as_node(node);",
        f"  [[maybe_unused]] auto& s = *new (n.saved()) {op.name}_saved;",
        "  n.released = false;",
    ]
    lines += edges(f)
    lines += f.save(v)
    lines += in_place_tail(op, f, pass_on) if v == "_" else tail(op, f, pass_on)
    return lines + ["}"]


def needs_grad(name):
    return f"needs_grad({name})"


def unless_recorded(op, f, pass_on):
    """Passes the call on if no input needs a gradient; refuses those for which no formula is."""
    needs = f.inputs_that_need_grad()
    if f.list_input:
        lines = [f"  if (!{needs[0]}) return {pass_on};"]
    else:
        lines = [f"  const bool n{i} = {text};" for i, text in enumerate(needs)]
        some = " | ".join(f"n{i}" for i in range(len(needs)))
        lines.append(f"  if (!({some})) return {pass_on};")
    for a in op.args:
        if a.is_tensorish and a not in f.inputs and a.name not in op.get("nondiff", []):
            lines.append(f'  if ({needs_grad(a.name)}) fail_no_formula("{a.name}");')
    return lines


def in_place_tail(op, f, pass_on):
    self = op.args[0].name
    lines = [f"  NodeRef prepared = prepare_inplace({self}, node);"]
    saved = [f"s.r{i}" for i in sorted(f.results)]  # from here on only the computation may fail
    when = [f.when("results", i) for i in sorted(f.results)]
    lines += [f"  {w}{r}.save_output({self}, 0);" for w, r in zip(when, saved)]
    lines.append(f"  {pass_on};")
    lines += [f"  {w}{r}.written({self});" for w, r in zip(when, saved)]
    return lines + [f"  commit_inplace({self}, std::move(prepared));"]


def tail(op, f, pass_on):
    lines = [f"  auto out = {pass_on};"]
    parts = ["out"] if len(op.outs) == 1 else [f"out.{p}" for p in MEMBERS[: len(op.outs)]]
    for i in sorted(f.results):
        how = (
            f"save_output(*{parts[i]}, {i})" if op.outs[i].differentiable else f"save(*{parts[i]})"
        )
        lines.append(f"  {f.when('results', i)}s.r{i}.{how};")
    if len(parts) == 1:
        return [*lines, "  set_history(std::move(node), *out, 0);", "  return out;"]
    for i, p in enumerate(parts):
        if op.outs[i].differentiable:  # an operator of several results may leave some undefined
            lines.append(f"  if ({p}) set_history(node, *{p}, {i});")
    return [*lines, "  return out;"]


def edges(f):
    if f.list_input:
        a = f.inputs[0].name
        return [
            f"  for (int64_t i = 0; i < {a}.n; i++)",
            f"    if (needs_grad({a}[i])) n.set_edge(i, {a}[i]);",
        ]
    return [f"  if (n{i}) n.set_edge({i}, {a.name});" for i, a in enumerate(f.inputs)]


def list_tail(op, f, pass_on):
    return [
        f"  TensorList out = {pass_on};",
        f"  NodeRef node = new_node(&{op.name}_type, {len(f.inputs)}, out.size());",
        "  Node& n = as_node(node);",
        f"  [[maybe_unused]] auto& s = *new (n.saved()) {op.name}_saved;",
        "  n.released = false;",
        *edges(f),
        *f.save(""),
        "  for (int64_t i = 0; i < out.size(); i++) set_history(node, *out[i], uint32_t(i));",
        "  return out;",
    ]


def ends_history(op):
    """Whether the results have no gradient although the operator takes tensors that may have
    one."""
    integers_only = op.kernel.get("set") == "bitwise"
    return op.get("grad") == "none" and not op.structural and not integers_only


def overwrites(op):
    """Whether it is in place without a gradient, so that the history of its target ends."""
    self = op.args[0].name
    values = variant_names(op, "_")
    return [
        f"static void {op.name}__autograd({', '.join(['Call c'] + variant_params(op, '_'))}) {{",
        f"  NodeRef prepared = prepare_overwrite({self});",
        f"  redispatch(op_{op.name}_, c.keys & kBelowAutograd, {', '.join(values)});",
        f"  if (prepared) commit_inplace({self}, std::move(prepared));",
        "}",
    ]


def replaces(op):
    """Whether it is an in-place composite whose parts save the overwritten tensor: they get a
    copy."""
    self = op.args[0].name
    values = variant_names(op, "_")
    needs = " || ".join(f"needs_grad({name})" for name in op.get("reads_self"))
    pass_on = f"redispatch(op_{op.name}_, c.keys & kBelowAutograd, {', '.join(values)})"
    result = f"dispatch(op_{op.name}, {', '.join(['*before'] + values[1:])})"
    return [
        f"static void {op.name}__autograd({', '.join(['Call c'] + variant_params(op, '_'))}) {{",
        f"  if (!({needs})) return {pass_on};",
        f"  const TensorRef before = overwritten({self});",
        f"  replace_values({self}, *{result});",
        "}",
    ]


ARG_TYPES = {
    "Tensor": "kTensor",
    "Tensor!": "kTensor",
    "Tensor?": "kOptTensor",
    "Tensor!?": "kOptTensor",
    "Tensor[]": "kTensorList",
    "Tensor?[]": "kOptTensorList",
    "Tensor![]": "kTensorList",
    "Scalar": "kScalar",
    "Scalar?": "kOptScalar",
    "Float": "kFloat",
    "Float?": "kOptFloat",
    "Int": "kInt",
    "Int?": "kOptInt",
    "Bool": "kBool",
    "Bool?": "kOptBool",
    "Dim": "kDim",
    "Dim?": "kOptDim",
    "Dims": "kDims",
    "Dims?": "kOptDims",
    "Index": "kIndex",
    "Index?": "kOptInt",
    "Size": "kSize",
    "Shape": "kShape",
    "Int[]": "kSize",
    "Index[]": "kIndices",
    "DType": "kDtype",
    "DType?": "kDtype",
    "Device": "kDevice",
    "Device?": "kDevice",
    "MemoryFormat": "kMemoryFormat",
    "Generator": "kGenerator",
    "Str": "kStr",
    "Rng": "kRng",
    "Object": "kObject",
}


def enumeration(a):
    return f"k{a.enum}Values" if a.enum else "0"


def default_info(a):
    """The trailing initialiser of an ArgInfo: its enumeration, its default as an ArgDefault."""
    text = cpp_default(a) if a.default is not None else "{}"
    if text in ("{}", "nullptr", "Dtype::kNone"):
        return f", {enumeration(a)}" if a.enum else ""
    if text in ("true", "false"):
        return f", 0, ArgDefault::kBool, {{.i = {int(text == 'true')}}}"
    number = re.sub(r"^kScalar<(.*)>$", r"\1", text)
    number = {"TT_CONTIGUOUS": "1", "TT_PRESERVE": "2"}.get(number, number)
    try:
        return f", {enumeration(a)}, ArgDefault::kInt, {{.i = {int(number)}}}"
    except ValueError:
        return f", 0, ArgDefault::kFloat, {{.f = {float(number)!r}}}"


def arg_infos(op, v):
    """The ArgInfos of a variant; those of the operator itself and of its _into are one table, dsts
    last."""
    args = []
    for i, a in enumerate(op.args):
        kind = "kEnum" if a.enum else ARG_TYPES[a.type]
        mutates = a.type in ("Tensor!", "Tensor!?", "Tensor![]") or (v == "_" and i == 0)
        args.append(
            f'{{"{a.name}", ArgType::{kind}, {str(mutates).lower()}, {str(a.default is not None).lower()}{default_info(a)}}}'
        )
    if not v and "_into" in variants_of(op):
        args += [f'{{"{d}", ArgType::kTensor, true, false}}' for d in dst_names(op)]
    return args


# gcc would align tables to 32 bytes, a tenth of their size.
DENSE = "alignas(8)"


class ArgTables:
    """The tables of ArgInfos. Those of several operators are in autograd/gen/arg_tables.h."""

    def __init__(self, ops):
        users = {}
        for op in ops.values():
            for v in variants_of(op):
                if v != "_into":
                    users.setdefault(tuple(arg_infos(op, v)), []).append(f"{op.name}{v}")
        self.shared = {args: names[0] for args, names in users.items() if args and len(names) > 1}

    def own(self, op, v):
        """The table of a variant, unless other operators share it."""
        args = tuple(arg_infos(op, v))
        if not args or args in self.shared:
            return []
        return [f"{DENSE} static constexpr ArgInfo {op.name}{v}_args[] = {{{', '.join(args)}}};"]

    def name(self, op, v):
        args = tuple(arg_infos(op, v))
        if args in self.shared:
            return f"args_like_{self.shared[args]}"
        return f"{op.name}{v}_args"

    def header(self):
        out = [
            HEADER + "// Tables of arguments that several operators share.\n#pragma once\n\n"
            '#include "ops/gen/ops.h"\n\nnamespace TT_NS {\n'
        ]
        for args, name in self.shared.items():
            out.append(
                f"{DENSE} inline constexpr ArgInfo args_like_{name}[] = {{{', '.join(args)}}};"
            )
        return "\n".join(out + ["\n}  // namespace TT_NS\n"])


AUTOCAST = {"lower": "kLower", "fp32": "kFp32", "promote": "kPromote", None: "kNone"}


def autocast_policy(op, v):
    """The initialiser of the AutocastPolicy; empty if there is none. Variants that write into an
    argument are not cast."""
    policy = [op.autocast(device) for device in ("cpu", "cuda")] if not v else []
    values = ", ".join(f"Autocast::{AUTOCAST[p]}" for p in policy)
    return f"{{{values}}}" if any(policy) else ""


def is_leaf(op, v):
    """Whether a variant is not made of calls of other operators: the in-place variant of a
    composite calls copy_, its _into variant copies without a call."""
    return not op.is_composite or v == "_into"


def designated(fields):
    """The initializers of a struct, in the order of its members."""
    return ", ".join(f".{name} = {value}" for name, value in fields.items())


def schema_fields(op, v, tables):
    """Field of an OpSchema -> its value, in the order of the struct; fields with their default are
    left out."""
    into_argument = bool(v)
    names = variant_names(op, v)
    n_outs = -1 if op.list_out else len(op.outs)
    fields = {
        "name": f'"{op.name}{v}"',
        "call": f'"{api_name(op)}{v}"',
        "args": tables.name(op, "" if v == "_into" else v) if names else "nullptr",
    }
    if op.get("flops") and v != "_into":
        fields["flops"] = f"{op.name}{v}_flops"
    fields |= {"n_args": str(len(names)), "n_outs": str(0 if v else n_outs)}
    flags = {
        "differentiable": op.has_grad or bool(op.composite),
        "random": any(a.type in ("Generator", "Rng") for a in op.args),
        "internal": op.internal,
        "structural": op.structural,
        "leaf": is_leaf(op, v),
    }
    fields |= {name: "true" for name, value in flags.items() if value}
    if op.kind != "Other":
        fields["kind"] = f"OpKind::k{op.kind}"
    if op.alias != "None" and not into_argument:
        fields["alias"] = f"Alias::k{op.alias}"
    if op.wide_unsigned != "None":
        fields["wide_unsigned"] = f"WideUnsigned::k{op.wide_unsigned}"
    if autocast_policy(op, v):
        fields["autocast"] = autocast_policy(op, v)
    return fields


def objects(op, v, function, node, tables):
    full = f"{op.name}{v}"
    ret, types = sig(op, v)
    impl = impl_name(op) if not v else f"{full}_impl"
    lines = [] if v == "_into" else tables.own(op, v)
    if op.get("flops") and v != "_into":
        lines.append(
            f"static double {full}_flops([[maybe_unused]] const Value* args, [[maybe_unused]] const TensorList& outs) {{ return {Flops(op).text}; }}"
        )
    fields = designated(schema_fields(op, v, tables))
    schema = f"schema_of({{{fields}}})"
    if node:
        lines.append(
            f"{DENSE} static constexpr RecordedSchema {full}_schema = {{{schema}, {node}}};"
        )
    else:
        lines.append(f"{DENSE} static constexpr OpSchema {full}_schema = {schema};")
    lines.append(
        f"constinit Op<{ret}({', '.join(types)})> op_{full} = "
        f"make_op<{', '.join([ret] + types)}>(&{full}_schema, {impl}, {function});"
    )
    return lines


def autograd_function(op, f, v):
    """The Autograd slot of a variant; empty if it has none, or into_autograd."""
    if v == "_into":
        return []
    if f:
        return void_wrapper(op, f) if op.void and not v else wrapper(op, f, v)
    if v == "_" and ends_history(op):
        return overwrites(op)
    if v == "_" and op.get("reads_self"):
        return replaces(op)
    return []


class Shared:
    """Functions of several operators, which autograd/gen/record.h has: gradients that are the same,
    and wrappers that differ in the operator and its node alone, and find both by their call."""

    def __init__(self, ops):
        users = {}
        self.formulas = {op.name: formula(op, ops) for op in ops.values()}
        for op in ops.values():
            f = self.formulas[op.name]
            for v in variants_of(op):
                lines = autograd_function(op, f, v)
                if lines:
                    users.setdefault(self.key(op, v, lines), []).append((op, v))
            if f:
                users.setdefault(self.key(op, "", f.apply()), []).append((op, ""))
        # key -> users, the first of which gives the function its name
        self.users = {key: found for key, found in users.items() if len(found) > 1}
        texts = {f.member_text() for f in self.formulas.values() if f}
        self.member_texts = sorted(texts - {""})
        self.owners = {}  # members -> the operator whose struct they are
        for (_, members), found in self.users.items():
            if members is not None:
                self.owners.setdefault(members, found[0][0])

    def member_number(self, f):
        """NodeType::members of a formula's node."""
        text = f.member_text()
        return self.member_texts.index(text) + 1 if text else 0

    def members_file(self):
        """src/autograd/gen/members.cpp."""
        texts = "\n    ".join(f'"{text}\\0"' for text in self.member_texts)
        return (
            HEADER + '#include "autograd/saved_values.h"\n\nnamespace TT_NS {\n\n'
            f"constinit const char node_members[] =\n    {texts};\n\n}}  // namespace TT_NS\n"
        )

    def members(self, op):
        f = self.formulas[op.name]
        return tuple((kind, general(op, f"s.{name}")) for kind, name in f.members()) if f else None

    def key(self, op, v, lines):
        """The text of the function without what is the operator's own, and what its node saves."""
        ret, types = sig(op, v)
        own = {
            f"{op.name}{v}_autograd(": "@record(",
            f"{op.name}_apply(": "@apply(",
            f"redispatch(op_{op.name}{v},": f"redispatch(op_of<{', '.join([ret] + types)}>(c),",
            f"&{op.name}_type": "node_of(c)",
            f"{op.name}_saved": "@saved",
        }
        text = "\n".join(lines)
        for name, placeholder in own.items():
            text = text.replace(name, placeholder)
        return general(op, text), self.members(op)

    def record(self, op, v, lines):
        """The name of the function that records the calls of a variant."""
        users = self.users.get(self.key(op, v, lines))
        return record_name(*users[0]) if users else f"{op.name}{v}_autograd"

    def apply(self, op):
        """The name of the function that computes the gradients."""
        users = self.users.get(self.key(op, "", self.formulas[op.name].apply()))
        return apply_name(users[0][0]) if users else f"{op.name}_apply"

    def struct(self, op):
        """The declaration of what a node saves."""
        owner = self.owners.get(self.members(op))
        if not owner:
            return self.formulas[op.name].struct()
        return [] if owner is op else [f"using {op.name}_saved = {owner.name}_saved;"]

    def with_members(self, op, lines):
        """A function of the operator's own, by the names that its struct has."""
        owner = self.owners.get(self.members(op))
        return [specific(op, general(op, line), owner) for line in lines] if owner else lines

    def header(self):
        out = [
            HEADER + "// Autograd functions that several operators share.\n#pragma once\n\n"
            '#include "autograd/saved.h"\n#include "autograd/wrap.h"\n\nnamespace TT_NS {\n'
        ]
        for op in self.owners.values():
            out += self.formulas[op.name].struct()
        for (text, members), users in self.users.items():
            first = users[0][0]
            owner = self.owners.get(members, first)
            own = {
                "static ": "inline ",
                "@record": record_name(*users[0]),
                "@apply": apply_name(first),
                "@saved": f"{owner.name}_saved",
            }
            for placeholder, name in own.items():
                text = text.replace(placeholder, name, 1)
            lines = specific(first, text, owner).split("\n")
            out += ["", "// " + ", ".join(op.name + v for op, v in users), *lines]
        return "\n".join(out + ["\n}  // namespace TT_NS\n"])


def general(op, text):
    """Writes @0 in place of the name of argument 0, except in messages and in std::, and so on."""
    for i, a in enumerate(op.args):
        facts = "|".join([*FACTS, "refs?"])
        name = rf'(?:(?<![":\w.])|(?<=\bs\.)){a.name}(?=_(?:{facts})\b|\b(?!::))'
        text = re.sub(name, f"@{i}", text)
    return text


def specific(op, text, owner):
    """The inverse of general; names of what is saved are those of owner's arguments."""
    text = re.sub(r"\bs\.@(\d+)", lambda m: f"s.{owner.args[int(m[1])].name}", text)
    return re.sub(r"@(\d+)", lambda m: op.args[int(m[1])].name, text)


def record_name(op, v):
    return f"record_like_{op.name}{v}"


def apply_name(op):
    return f"apply_like_{op.name}"


def generate_op(op, ops, shared, tables):
    lines = [f"// ---- {op.name} ----"]
    f = formula(op, ops)
    if f:
        apply = shared.apply(op)
        lines += shared.struct(op)
        if apply == f"{op.name}_apply":
            lines += shared.with_members(op, f.apply())
        fields = {
            "name": f'"{op.host}"',
            "apply": apply,
            "destroy_saved": f.destroy(),
            "saved_bytes": f"sizeof({op.name}_saved)",
            "members": shared.member_number(f),
        }
        lines.append(
            f"{DENSE} static constinit const NodeType {op.name}_type = "
            f"{{{designated(fields)}}};"
        )
    for v in variants_of(op):
        text = autograd_function(op, f, v)
        function = "into_autograd" if v == "_into" else "nullptr"
        if text:
            function = shared.record(op, v, text)
            if function == f"{op.name}{v}_autograd":
                lines += shared.with_members(op, text)
        finds_node = f and function.startswith("record_like_")
        lines += objects(op, v, function, f"&{op.name}_type" if finds_node else None, tables)
    return lines + [""]


def void_wrapper(op, f):
    """An operator that only exists in place (its first argument is Tensor!)."""
    lines = wrapper(op, f, "_")
    return [
        line.replace(f"{op.name}__autograd(", f"{op.name}_autograd(").replace(
            f"op_{op.name}_,", f"op_{op.name},"
        )
        for line in lines
    ]


def generate(ops):
    shared = Shared(ops)
    tables = ArgTables(ops)
    files = {
        "src/autograd/gen/members.cpp": shared.members_file(),
        "src/autograd/gen/record.h": shared.header(),
        "src/autograd/gen/arg_tables.h": tables.header(),
    }
    for family, members in families(ops).items():
        counted = any(op.get("flops") for op in members)
        includes = [
            "autograd/formulas/formulas.h",
            "autograd/gen/arg_tables.h",
            "autograd/gen/record.h",
            "autograd/saved.h",
            "autograd/wrap.h",
            *(["dispatch/flops.h"] if counted else []),
            "ops/gen/impl_decl.h",
            "ops/gen/impls.h",
            "ops/gen/kernels.h",
            "ops/gen/ops.h",
        ]
        out = [HEADER + "\n".join(f'#include "{path}"' for path in includes)]
        out.append("\nnamespace TT_NS {\n")
        for op in members:
            out += generate_op(op, ops, shared, tables)
        out.append("}  // namespace TT_NS\n")
        files[f"src/autograd/gen/{family}.cpp"] = "\n".join(out)
    return files | forward.generate(ops, lambda op: formula(op, ops), lambda op: emitter(op, ops))


def formula(op, ops):
    return Formula(op, ops) if op.has_grad else None


def emitter(op, ops):
    """A function from a formula of forward mode to its C++ and its Uses."""

    def emit(text):
        functions = formula_functions(ROOT)
        e = Emitter(op, ops, functions, lambda n: n, lambda n, f: FACTS[f][2].format(n))
        code = e.emit(text)
        e.uses.args -= {"tangents"}
        return code, e.uses

    return emit
