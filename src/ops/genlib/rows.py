"""Rows of the op-table test: tests/gen/op_rows.inc, one per operator that hosts can name."""
import json

from .cpp import HEADER


def differentiable(op):
    carries = any(o.differentiable for o in op.outs) or (op.void and op.has_grad)
    by_parts = bool(op.composite) or op.get("front") == "composite"  # its parts have the formulas
    return carries and (op.has_grad or by_parts)


def row(op):
    args = ", ".join(f'{{"{a.name}", "{a.type}", {int(a.default is not None)}}}' for a in op.args)
    facts = [int(differentiable(op)), int("inplace" in op.variants), int("into" in op.variants), -1 if op.list_out else len(op.outs),
             op.get("tolerance", 0), len(op.args)]
    return f'{{"{op.name}", {json.dumps(op.get("samples"))}, {", ".join(map(str, facts))}, {{{args}}}}},'


def generate(ops):
    head = HEADER + "// {name, samples, differentiable, in place, into, outs (-1: a list), tolerance, arguments, {{name, type, has a default}, …}}\n"
    return {"tests/gen/op_rows.inc": head + "\n".join(row(op) for op in ops.values() if not op.internal) + "\n"}
