"""Rows of the op-table test, tests/gen/op_rows.inc: one per operator that applications can name.
Rows of the hostile-argument test, tests/gen/hostile_calls.inc: one call per exported C function,
its pointers taken from an array."""
import json
import re

from codegen.c import classes
from codegen.c.ops import exported
from codegen.cxx.ops import HEADER, ROOT
from codegen.model.schema import split_top


def differentiable(op):
    carries = any(o.differentiable for o in op.outs) or (op.void and op.has_grad)
    by_parts = bool(op.composite) or op.get("impl") == "composite"  # its parts have the formulas
    return carries and (op.has_grad or by_parts)


def row(op):
    args = ", ".join(f'{{"{a.name}", "{a.type}", {int(a.default is not None)}}}' for a in op.args)
    facts = [
        int(differentiable(op)),
        int("inplace" in op.variants),
        int("into" in op.variants),
        -1 if op.list_out else len(op.outs),
        len(op.args),
    ]
    return f'{{"{op.name}", {json.dumps(op.get("samples"))}, {", ".join(map(str, facts))}, {{{args}}}}},'


# C type of a pointer -> what the test puts there. Other pointers are plain memory.
KINDS = {
    "tt_ctx *": "Ctx",
    "tt_runtime *": "Runtime",
    "tt_tensor *": "Tensor",
    "tt_generator *": "Generator",
    "tt_cancel *": "Cancel",
    "tt_node *": "Node",
    "tt_op *": "Op",
    "tt_function *": "Function",
    "tt_safetensors *": "Safetensors",
    "tt_optimizer *": "Optimizer",
    "tt_scheduler *": "Scheduler",
    "tt_optimizer **": "OutOptimizer",
    "tt_scheduler **": "OutScheduler",
    "tt_scheduler *const *": "Schedulers",
    "double *": "Doubles",
    "tt_module *": "Module",
    "tt_state_dict *": "StateDict",
    "tt_dataset *": "Dataset",
    "tt_sampler *": "Sampler",
    "tt_loader *": "Loader",
    "tt_graph *": "Graph",
    "tt_group *": "Group",
    "tt_work *": "Work",
    "tt_ddp *": "Ddp",
    "tt_ddp **": "OutDdp",
    "tt_stream *": "Stream",
    "tt_event *": "Event",
    "tt_grad_scaler *": "GradScaler",
    "tt_group **": "OutGroup",
    "tt_work **": "OutWork",
    "tt_stream **": "OutStream",
    "tt_event **": "OutEvent",
    "tt_grad_scaler **": "OutGradScaler",
    "tt_plan *": "Plan",
    "tt_compiled *": "Compiled",
    "tt_compiled **": "OutCompiled",
    "tt_dataset *const *": "Datasets",
    "tt_dataset **": "OutDataset",
    "tt_sampler **": "OutSampler",
    "tt_loader **": "OutLoader",
    "tt_graph **": "OutGraph",
    "tt_plan **": "OutPlan",
    "tt_module **": "OutModule",
    "tt_state_dict **": "OutStateDict",
    "tt_module_def *": "ModuleDef",
    "tt_checkpoint *": "Checkpoint",
    "tt_tensor **": "OutTensor",
    "tt_runtime **": "OutRuntime",
    "tt_ctx **": "OutCtx",
    "tt_generator **": "OutGenerator",
    "tt_cancel **": "OutCancel",
    "tt_node **": "OutNode",
    "tt_safetensors **": "OutSafetensors",
    "tt_op **": "Out",
    "tt_op *const *": "Ops",
    "tt_tensor *const *": "Tensors",
    "tt_scalar *": "Scalar",
    "tt_device *": "Device",
    "tt_index *": "Index",
    "tt_value *": "Values",
    "tt_function_def *": "FunctionDef",
    "tt_op_def *": "OpDef",
    "char *": "Text",
    "char *const *": "Texts",
    "int64_t *": "Ints",
}
CALLBACKS = {
    "tt_module_hook",
    "tt_module_pre_hook",
    "tt_lr_lambda_fn",
    "tt_sample_fn",
    "tt_work_fn",
    "tt_optim_closure",
    "tt_grad_hook",
    "tt_node_hook",
    "tt_accumulate_hook",
    "tt_ddp_hook",
    "tt_trace_fn",
    "tt_fn",
}
NUMBERS = {"bytes": "16", "cap": "4", "type": "TT_CPU", "chunks": "1"}
PROTOTYPE = re.compile(
    r"^(?!typedef\b)((?:const )?[a-z]\w*(?: \**|\b) ?\**)(tt_\w+)\(([^;]*)\);", re.M
)


def header_functions():
    """(result type, name, parameters) of every function of tt.h."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "include/tt.h").read_text(), flags=re.S)
    for m in PROTOTYPE.finditer(text):
        yield m.group(1).strip(), m.group(2), [
            " ".join(p.split()) for p in split_top(m.group(3)) if p != "void"
        ]


def parameter(text):
    """(type without a leading const, name, is it an output)."""
    m = re.match(r"(.*)\(\*(\w+)\)\(.*\)$", text)
    if m:
        return "callback", m.group(2), False
    m = re.match(r"(.*?[ *])(\w+)(\[\d*\])?$", text)
    kind = m.group(1).strip()
    name = m.group(2)
    if m.group(3):
        kind += " *"
    out = not kind.startswith("const ")
    return re.sub(r"^const ", "", kind), name, out


def place(text):
    """(kind, name) of a pointer parameter; None for a number."""
    kind, name, out = parameter(text)
    if kind == "callback" or kind in CALLBACKS:
        return ("Callback", name, kind)
    if "*" not in kind:
        return None
    if kind.endswith("_opts *"):
        return ("Opts", name, kind)
    found = KINDS.get(kind, "Memory")
    if out and found in ("Ints", "Doubles", "Text", "Scalar", "Device") and name not in ("state",):
        found = "Out"
    return (found, name, kind)


def number(text):
    kind, name, _ = parameter(text)
    if name in NUMBERS:
        return NUMBERS[name]
    if kind == "tt_dtype":
        return "TT_F32"
    return "1" if name.startswith("n") or name.endswith("_size") else "0"


def handle_options(op):
    """Options that are handles: (field, kind)."""
    found = {"Generator": "Generator", "Tensor?": "Tensor"}
    return [(a.name, found[a.type]) for a in op.options if a.type in found] if op else []


def cast_of(kind, type):
    """The cast of a pointer to an argument of this kind."""
    if kind != "Callback":
        return ""
    return f"({type})" if type != "callback" else "(void (*)(void *))"


def returned(result, call):
    """The statements that return the result of a call as an int64_t."""
    if result == "tt_status":
        return f"return {call};"
    if result == "void":
        return f"{call};\n  return 0;"
    return f"return (int64_t){'(intptr_t)' * ('*' in result)}{call};"


def hostile(result, name, params, op, wrong=None):
    """The caller and the row of one function. wrong: the Enum<> argument that gets an invalid
    number."""
    places = []
    args = []
    before = []
    for text in params:
        p = place(text)
        if not p:
            args.append("kNoValue" if wrong and parameter(text)[1] == wrong.name else number(text))
        elif p[0] == "Opts" and wrong and not wrong.positional:
            before.append(f"  {p[2].replace(' *', '')} o = {{0}};")
            before += [
                f"  o.{wrong.name} = kNoValue;",
                f"  o.set = UINT64_C(1) << {op.options.index(wrong)};",
            ]
            args.append("&o")
        elif p[0] == "Opts" and handle_options(op):
            struct = p[2].replace(" *", "")
            before.append(f"  {struct} o = {{0}};")
            for k, a in enumerate(op.options):
                for field, kind in handle_options(op):
                    if a.name == field:
                        before += [f"  o.{field} = p[{len(places)}], o.set |= UINT64_C(1) << {k};"]
                        places.append((f"Opt{kind}", field))
            args.append("&o")
        else:
            args.append(f"{cast_of(p[0], p[2])}p[{len(places)}]")
            arg = op.arg(p[1]) if op else None
            places.append((f"Maybe{p[0]}" if arg and arg.type.endswith("?") else p[0], p[1]))
    if not places:
        return None
    call = f"{name}({', '.join(args)})"
    kind = {"tt_status": "kStatus", "void": "kVoid"}.get(result, "kFact")
    body = "\n".join(
        [f"static int64_t call_{name}(void **p) {{", *before, f"  {returned(result, call)}", "}"]
    )
    table = ", ".join(f'{{k{k}, "{n}"}}' for k, n in places)
    return body, f'{{"{name}", call_{name}, {kind}, {len(places)}, {{{table}}}}},'


def hostile_calls(ops, groups):
    functions = [(r, n, p, None) for r, n, p in header_functions()]
    functions += [("tt_status", n, p, op) for n, p, op in exported(ops)]
    functions += [("tt_status", n, p, cls) for n, p, cls in classes.exported(groups)]
    rows = [h for h in (hostile(*f) for f in functions) if h]
    return (
        HEADER
        + "\n".join(body for body, _ in rows)
        + "\nstatic const Function kFunctions[] = {\n"
        + "\n".join(r for _, r in rows)
        + "\n};\n"
    )


def generate(ops, groups):
    head = (
        HEADER
        + "// {name, samples, differentiable, in place, into, outs (-1: a list), arguments, {{name, type, has a default}, …}}\n"
    )
    return {
        "tests/gen/op_rows.inc": head
        + "\n".join(row(op) for op in ops.values() if not op.internal)
        + "\n",
        "tests/gen/hostile_calls.inc": hostile_calls(ops, groups),
    }
