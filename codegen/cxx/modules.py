"""Types of modules: what src/nn/decl/nn.toml says beyond a constructor (its head names the keys).

Made from it: src/nn/gen/layers.h (what is written by hand: build and forward of some classes) and
src/nn/gen/modules.cpp (forward, printing, slots and construct of all).
"""
from codegen.c.classes import what
from codegen.cxx.ops import HEADER, cpp_default
from codegen.model.expr import Emitter
from codegen.model.schema import ENUMS, DeclError

HEAD = HEADER.replace("src/ops/decl", "src/nn/decl")


class Layer:
    def __init__(self, cls):
        self.cls = cls
        self.name = cls.host
        self.inputs = [] if cls.get("container") else cls.get("inputs", ["input"])
        declared = [s.lstrip("@") for s in cls.get("slots", [])]
        self.tensor_args = [a.name for a in cls.args if a.type == "Tensor?"]
        self.module_args = [a.name for a in cls.args if a.type in ("Module", "Module?")]
        self.slots = declared + [n + "?" for n in self.tensor_args]
        self.buffers = [s.startswith("@") for s in cls.get("slots", [])] + [True] * len(
            self.tensor_args
        )
        ways = [k for k in ("forward", "sequential", "container") if cls.get(k)]
        if len(ways) != 1:
            raise DeclError(f"{cls.name}: needs exactly one of forward, sequential, container")
        self.cpp = cls.get("forward") == "cpp"

    @property
    def args_struct(self):
        return self.cls.args_struct

    def cpp_name(self, n):
        """C++ of a name in the forward formula."""
        for i, x in enumerate(self.inputs):
            if n == x.rstrip("?"):
                return f"in_opt(in, {i})" if x.endswith("?") else f"*in[{i}]"
        for i, s in enumerate(self.slots):
            if n == s.rstrip("?"):
                return f"m.slot_opt({i})" if s.endswith("?") else f"m.slot({i})"
        if n == "training":
            return "m.training"
        if not self.cls.arg(n):
            raise DeclError(f"{self.cls.name}: forward uses unknown name {n!r}")
        return f"a.{n}"

    def forward(self, ops):
        if self.cls.get("sequential") or self.cls.get("container"):
            return []
        lines = [
            f"static TensorList {self.name}_forward(Module& m, [[maybe_unused]] TensorSpan in) {{",
            f"  [[maybe_unused]] const auto& a = args_of<{self.args_struct}>(m);",
        ]
        if self.cpp:
            return lines + ["  return forward_of(m, a, in);", "}"]
        text = self.cls.get("forward")
        call = Emitter(self.cls, ops, set(), self.cpp_name, None).emit(text)
        if self.cls.arg("inplace"):
            name = text.split("(")[0]
            if "inplace" not in ops[name].variants:
                raise DeclError(f"{self.cls.name}: {name} has no in-place form")
            other = call.replace(f"op::{name}(", f"op::{name}_(", 1).replace("*in[0]", "x", 1)
            lines += [
                "  if (a.inplace) {",
                "    Tensor& x = const_cast<Tensor&>(*in[0]);",
                f"    {other};",
                "    return one(TensorRef::share(&x));",
                "  }",
            ]
        return lines + [f"  return one({call});", "}"]

    def default_of(self, a):
        if a.type in ("Int[]", "Shape"):
            return a.default if a.default not in (None, "None") else None
        return cpp_default(a)

    def describe(self):
        items = self.cls.get("describe")
        if items == "cpp":
            return [
                f"TT_COLD static void {self.name}_describe(const Module& m, Text& t) {{ describe_of(m, args_of<{self.args_struct}>(m), t); }}"
            ]
        if not items:
            return []
        lines = [
            f"TT_COLD static void {self.name}_describe(const Module& m, Text& t) {{",
            f"  const auto& a = args_of<{self.args_struct}>(m);",
        ]
        for item in items:
            n = item.rstrip("=?")
            a = self.cls.arg(n)
            if not a:
                raise DeclError(f"{self.cls.name}: describes {n!r}, which is no argument")
            label = f'"{n}"' if "=" in item else "nullptr"
            value = f"a.{n}"
            if a.type == "Bool" and n + "?" in self.slots:  # a program may have changed the slot
                value = f"m.slot_opt({self.slots.index(n + '?')}) != nullptr"
            if a.enum:
                table = ", ".join(f'"{k}"' for k in ENUMS[a.enum])
                put = f"static constexpr const char* k_{n}[] = {{{table}}}; put(t, {label}, k_{n}[{value}]);"
            else:
                put = f"put(t, {label}, {value}{', true' if a.type == 'Shape' or a.type == 'Int[]' and self.cls.get('list_length') else ''});"
            if item.endswith("?"):
                put = (
                    f"if (differs({value}, {self.default_of(a)})) {{ {put} }}"
                    if self.default_of(a) not in (None, "{}")
                    else f"if ({value}) {put}"
                )
            lines.append("  " + put)
        return lines + ["}"]

    def type_object(self):
        needed = sum(not x.endswith("?") for x in self.inputs)
        fn = f"{self.name}_forward" if self.cls.get("forward") else "nullptr"
        describe = f"{self.name}_describe" if self.cls.get("describe") else "nullptr"
        sequential = bool(self.cls.get("sequential"))
        values = [f'"{self.name}"', str(1 if sequential else needed), str(len(self.inputs))]
        values += [fn, describe] + ["true"] * sequential
        return (
            f"static constinit const ModuleType {self.name}_type = "
            f"layer_type<{self.args_struct}>({', '.join(values)});"
        )

    def construct(self):
        lines = [f"TT_COLD Ref<{what(self.cls)}> construct(const {self.args_struct}& a) {{"]
        followers = [
            a.name for a in self.cls.args if a.name == "stride" and a.default == "None"
        ]  # not given: as kernel_size
        fixed = self.cls.get("list_length")
        lists = [a for a in self.cls.args if a.type == "Int[]" and a.default not in (None, "None")]
        required = [a.name for a in self.cls.args if a.type == "Int[]" and a.default is None]
        passed = self.tensor_args + self.module_args  # to slots and children
        changed = bool(passed or required or followers or lists)
        if changed:
            lines.append(f"  {self.args_struct} own = a;")
            lines += [f"  own.{n} = nullptr;" for n in passed]
            lines += [f'  check_given(own.{n}, "{n}");' for n in required]
            lines += [
                f"  if (own.{x.name}.empty()) own.{x.name}.push_back({x.default});" for x in lists
            ]
            lines += [f"  if (own.{n}.empty()) own.{n} = own.kernel_size;" for n in followers]
            if fixed:
                lines += [
                    f'  expand(own.{x.name}, {fixed}, "{x.name}");'
                    for x in self.cls.args
                    if x.type == "Int[]"
                ]
        source = "own" if changed else "a"
        make = f"new_layer(&{self.name}_type, &{source});"
        if not self.slots and not self.cls.get("build"):
            return lines + [f"  return {make}", "}"]
        lines.append(f"  ModuleRef m = {make}")
        for s, buffer in zip(self.slots, self.buffers):
            n = s.rstrip("?")
            tensor = f"a.{n}" if n in self.tensor_args else "nullptr"
            lines.append(f'  add_slot(*m, "{n}", {tensor}, {str(buffer).lower()});')
        if self.cls.get("build"):
            given = "a" if self.module_args else f"args_of<{self.args_struct}>(*m)"
            lines.append(f"  build(*m, {given});")
        return lines + ["  return m;", "}"]


def layers_h(layers):
    out = [
        HEAD
        + "// What is written by hand for some classes: build fills the slots of a new module, forward_of computes, describe_of prints.\n"
        '#pragma once\n\n#include "nn/gen/classes.h"\n#include "nn/layer.h"\n\nnamespace TT_NS {\n'
    ]
    for x in layers:
        if x.cls.get("build"):
            out.append(f"void build(Module& m, const {x.args_struct}& a);")
        if x.cpp:
            out.append(
                f"TensorList forward_of(Module& m, const {x.args_struct}& a, TensorSpan in);"
            )
        if x.cls.get("describe") == "cpp":
            out.append(f"void describe_of(const Module& m, const {x.args_struct}& a, Text& t);")
    return "\n".join(out) + "\n\n}  // namespace TT_NS\n"


def modules_cpp(layers, ops):
    out = [HEAD + '#include "nn/gen/layers.h"\n#include "ops/gen/ops.h"\n\nnamespace TT_NS {\n']
    for x in layers:
        out += x.forward(ops) + x.describe() + [x.type_object()] + x.construct() + [""]
    return "\n".join(out) + "}  // namespace TT_NS\n"


def generate(ops, groups):
    layers = [Layer(c) for c in groups.get("nn", [])]
    return {
        "src/nn/gen/layers.h": layers_h(layers),
        "src/nn/gen/modules.cpp": modules_cpp(layers, ops),
    }
