"""The machine-readable list of all operators: src/gen/all_ops.cpp, reached only by tt_op_find, tt_manifest and the like."""
import json

from .capi import c_name, forms
from .cpp import HEADER, variants_of


def entry(op):
    return {"name": op.name, "host": op.host, "schema": op.schema, "family": op.family, "variants": [v for v in variants_of(op) if v],
            "c": [] if op.internal else [c_name(op, s, "") for s, _, _ in forms(op)], "internal": op.internal,
            "differentiable": op.has_grad or bool(op.composite), "doc": " ".join(op.get("doc", "").split())}


def literal(text, width=4000):
    parts = [text[i:i + width] for i in range(0, len(text), width)]
    return "\n    ".join(json.dumps(p) for p in parts)


def generate(ops):
    full = [f"{op.name}{v}" for op in ops.values() for v in variants_of(op)]
    order = sorted(full)
    text = json.dumps({"format": 1, "operators": [entry(op) for op in ops.values()]}, separators=(",", ":"))
    out = [HEADER + '#include "dispatch/all_ops.h"\n#include "gen/ops.h"\n\nnamespace TT_NS {\n',
           "// Sorted by name."] + [f"constinit OpInfo* const all_ops[] = {{"] + [f"    &op_{n}.info," for n in order] + ["};",
           f"constinit const int64_t num_all_ops = {len(order)};", f"constinit const char manifest_text[] =\n    {literal(text)};",
           "\n}  // namespace TT_NS\n"]
    return {"src/gen/all_ops.cpp": "\n".join(out)}
