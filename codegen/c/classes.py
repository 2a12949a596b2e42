"""Classes: objects that are constructed by name, with the arguments and defaults of PyTorch
(src/<group>/decl/*.toml).

A file declares one class per table, named as its constructor goes in C without tt_: [optim_sgd]
makes tt_optim_sgd. Keys of a class:
    schema      "SGD(params: Tensor![], lr: Float = 1e-3, …)": its name in the bindings, arguments
                as an operator's
    doc, args   text of the class and of arguments
    positional  defaulted arguments that are C parameters all the same; the others form
                tt_<name>_opts
    keyword     arguments that Python takes by keyword only
    names       (values) of the halves of a Float[2]: { betas = ["beta1", "beta2"] }
    constants   (values) further values of fixed size: { decoupled_weight_decay = true }
The table [class] says what they have in common:
    handle      the C type of what is constructed
    include     headers of src/capi: checks of handles that are arguments
    values      true: the arguments behind the first are numbers; they get a table of names and
                defaults
    own         true: the objects keep the struct of arguments, so that its lists own their numbers
    kind        "module": the keys of modules.py, which makes the rest of them
Made from it: include/tt_<group>.h, src/capi/gen/class_<group>.cpp, src/<group>/gen/classes.h (a
struct <Class>Args per class: the constructor calls construct(const <Class>Args&), which the group
defines), bindings/python/tt/_<group>_classes.py, rows of abi.lock.
"""
import ast
import re
import tomllib
from dataclasses import dataclass

from codegen.c.ops import CHEAD, c_params, comment, in_expr, opt_local, opts_struct
from codegen.cxx.ops import HEADER, cpp_default
from codegen.model.checks import DeclError, check_types
from codegen.model.schema import ENUMS, Op, parse_args

# key -> the type of its value
KEYS = {
    "schema": str,
    "doc": str,
    "args": dict,
    "positional": list,
    "keyword": list,
    "names": dict,
    "constants": dict,
}
MODULE_KEYS = {  # of codegen/cxx/modules.py
    "inputs": list,
    "slots": list,
    "shape": str,
    "slot_shapes": dict,
    "forward": str,
    "describe": (str, list),
    "build": bool,
    "list_length": int,
    "sequential": bool,
    "container": bool,
    "lazy": bool,
}
COMMON = {"handle": str, "include": list, "values": bool, "own": bool, "kind": str}


@dataclass
class Class(Op):
    """An Op whose name is that of its C constructor."""

    common: dict = None

    @property
    def args_struct(self):
        return f"{self.host}Args"

    @property
    def handle(self):
        return self.common["handle"]


def make_class(name, group, raw, common):
    is_module = common.get("kind") == "module"
    check_types(name, raw, KEYS | MODULE_KEYS if is_module else KEYS)
    match = re.match(r"(\w+)\((.*)\)$", raw.get("schema", ""))
    if not match:
        raise DeclError(f"{name}: schema is not 'Name(argument: Type = default, …)'")
    host, text = match.groups()
    args = parse_args(name, text)
    cls = Class(name, group, raw["schema"], args, [], dict(raw, host=host), common=common)
    if not raw.get("doc"):
        raise DeclError(f"{name}: no doc")
    for key in ("args", "keyword", "positional", "names"):
        for argument in raw.get(key, ()):
            if not cls.arg(argument):
                raise DeclError(f"{name}: {key} names an argument {argument!r} that does not exist")
    for a in args:
        a.positional = a.default is None or a.name in raw.get("positional", [])
        a.doc = raw.get("args", {}).get(a.name, "")
    if raw.get("lazy") and not (args and args[0].type == "Int" and args[0].positional):
        raise DeclError(f"{name}: lazy, but the first argument is no size")
    return cls


def read(group, text):
    """The classes of a file."""
    table = tomllib.loads(text)
    common = table.pop("class", {})
    check_types(f"[class] of {group}", common, COMMON)
    if "handle" not in common:
        raise DeclError(f"[class] of {group}: no handle")
    return [make_class(name, group, raw, common) for name, raw in table.items()]


def load_classes(root):
    """group -> its classes, in the order of the file."""
    groups = {}
    for path in sorted((root / "src").glob("*/decl/*.toml")):
        group = path.parts[-3]
        if group != "ops":
            groups.setdefault(group, []).extend(read(group, path.read_text()))
    return groups


def c_parameters(cls):
    return ["tt_ctx *c"] + c_params(cls, "", None, bool(cls.options)) + [f"{cls.handle} **out"]


LAZY = """enum {
  /* A size that the first input decides, or a state that is loaded: the first argument of Linear,
     of convolutions and of normalizations of batches and instances. Until then parameters have the
     size 0; optimizers may know them: they remain the same tensors. */
  TT_NN_LAZY = -2147483647
};
"""


def header(group, classes):
    guard = f"TT_{group.upper()}_H"
    head = CHEAD.replace("src/ops/decl", f"src/{group}/decl")
    out = [
        head
        + f'#ifndef {guard}\n#define {guard}\n\n#include "tt_ops.h"\n\n#ifdef __cplusplus\nextern "C" {{\n#endif\n'
    ]
    for cls in classes:
        out.append(comment(cls))
        if cls.options:
            out += opts_struct(cls)
        out += [f"tt_status tt_{cls.name}({', '.join(c_parameters(cls))});", ""]
    if any(cls.get("lazy") for cls in classes):
        out.append(LAZY)
    return "\n".join(out + ["#ifdef __cplusplus\n}\n#endif\n#endif\n"])


# ---- C++ ----


def values(cls):
    """(name, default, whether it is a flag, C++ expression) of each number of a class, in declared
    order, then of its constants."""
    for a in cls.args[1:]:
        flag = a.type == "Bool"
        if a.type == "Float[2]":
            for name, standard, part in zip(
                cls.get("names")[a.name], ast.literal_eval(a.default), ("first", "second")
            ):
                yield name, standard, False, f"a.{a.name}.{part}"
        elif a.enum or a.type in ("Float", "Int", "Bool"):
            yield a.name, cpp_default(a), flag, f"double(a.{a.name})"
        elif a.type in ("Int?", "Float?"):  # nan: the constructor computes it
            nan = "kNan"
            yield a.name, nan, flag, f"a.{a.name}.has ? double(a.{a.name}.value) : {nan}"
        else:
            raise DeclError(f"{cls.name}: {a.name} is no number")
    for name, value in cls.get("constants", {}).items():
        yield name, str(value).lower(), isinstance(value, bool), str(float(value))


def field(cls, a):
    owned = cls.common.get("own") and a.cpp == "Ints"
    return f"  {'Shape' if owned else a.cpp} {a.name};"


def structs(group, classes):
    head = HEADER.replace("src/ops/decl", f"src/{group}/decl")
    out = [head + f'#pragma once\n\n#include "{group}/class.h"\n\nnamespace TT_NS {{\n']
    for cls in classes:
        out += [f"struct {cls.args_struct} {{"] + [field(cls, a) for a in cls.args] + ["};"]
        if cls.common.get("values"):
            rows = list(values(cls))
            inner = ", ".join(f'{{"{n}", double({d}), {str(f).lower()}}}' for n, d, f, _ in rows)
            out.append(f"inline constexpr ClassValue k{cls.host}Values[] = {{{inner}}};")
            out.append(
                f"inline void values_of([[maybe_unused]] const {cls.args_struct}& a, double* v) {{"
            )
            out += [f"  v[{k}] = {e};" for k, (_, _, _, e) in enumerate(rows)] + ["}"]
        out += [f"Ref<{what(cls)}> construct(const {cls.args_struct}& a);", ""]
    return "\n".join(out + ["}  // namespace TT_NS\n"])


def what(cls):
    """tt_optimizer -> Optimizer"""
    return "".join(part.capitalize() for part in cls.handle.split("_")[1:])


def function(cls):
    lines = [
        f"tt_status tt_{cls.name}({', '.join(c_parameters(cls))}) {{",
        "  if (out) *out = nullptr;",
        f'  return api_call(c, "{cls.name}", [&](Ctx&) {{',
        f'    out_arg(out, "out", {len(cls.args)});',
    ]
    fields = []
    if cls.options:
        lines.append(f"    check_opts(opts, {len(cls.options)});")
    for i, a in enumerate(cls.args):
        if a.positional:
            fields.append(in_expr(cls, i, a, ""))
        else:
            lines.append("    " + opt_local(cls, cls.options.index(a), a, i))
            fields.append(f"o_{a.name}")
    if cls.common.get("own"):
        fields = [f"Shape({f})" if a.cpp == "Ints" else f for f, a in zip(fields, cls.args)]
    lines.append(
        f"    *out = reinterpret_cast<{cls.handle}*>(construct({cls.args_struct}{{{', '.join(fields)}}}).leak());"
    )
    return lines + ["  });", "}"]


def wrappers(group, classes):
    head = HEADER.replace("src/ops/decl", f"src/{group}/decl")
    headers = sorted({h for cls in classes for h in cls.common.get("include", [])})
    more = "".join(f'#include "{h}"\n' for h in headers)
    has_enums = any(a.enum for cls in classes for a in cls.args)
    enums = '#include "ops/gen/ops.h"\n' if has_enums else ""
    out = [
        head
        + f'#include "capi/api.h"\n{more}#include "{group}/gen/classes.h"\n{enums}\nusing namespace TT_NS;\n'
    ]
    for cls in classes:
        out += function(cls)
    return "\n".join(out) + "\n"


# ---- rows for others ----


def exported(groups):
    for classes in groups.values():
        for cls in classes:
            yield f"tt_{cls.name}", c_parameters(cls), cls


def generate(groups):
    files = {}
    for group, classes in groups.items():
        files[f"include/tt_{group}.h"] = header(group, classes)
        files[f"src/{group}/gen/classes.h"] = structs(group, classes)
        files[f"src/capi/gen/class_{group}.cpp"] = wrappers(group, classes)
    return files
