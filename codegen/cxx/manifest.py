"""The machine-readable list of all operators: src/ops/gen/all_ops.cpp, reached only by tt_op_find, tt_manifest and the like."""
import json

from codegen.c.ops import c_name, forms
from codegen.cxx.ops import HEADER, variants_of


def entry(op):
    return {
        "name": op.name,
        "host": op.host,
        "schema": op.schema,
        "family": op.family,
        "variants": [v for v in variants_of(op) if v],
        "c": [] if op.internal else [c_name(op, s, "") for s, _, _ in forms(op)],
        "internal": op.internal,
        "differentiable": op.has_grad or bool(op.composite),
        "doc": " ".join(op.get("doc", "").split()),
    }


# What the manifest's text says often: byte 0x80 + i stands for phrase i. Only adding at the end leaves the packed text of others as it is.
PHRASES = [
    '"],"internal":false,"differentiable":',
    ') -> Tensor","family":"',
    '],"c":[],"internal":true,"differentiable":true,"doc":""},{"name":"',
    ": Tensor",
    '","schema":"',
    '","variants":[',
    '","host":"',
    '"},{"name":"',
    '],"c":["tt_',
    'e,"doc":"',
    " elementwise with broadcasting",
    "self",
    '"_","_into"',
    "? = None",
    "_backward",
    '","family":"',
    "fals",
    " of ",
    "calar",
    ": Int",
    ", dim: Dim",
    " element",
    " other",
    " dimension",
    ", generator: Generator = None",
    "tion",
    "input",
    " Bool",
    "bitwise_",
    '64","tt_',
    ", dtype: DType",
    "index",
    "the ",
    "ensor",
    ": Float",
    ", device: Device",
    "weight",
    " and ",
    '"_into"',
    "norm",
    "tive",
    " with",
    "math_more",
    "max_pool",
    "The ",
    "size",
    "stride",
    '],"c":[],"internal":true,"differentiable":',
    ") ->",
    "conv",
    "cross_entropy",
    "adding",
    " = 1",
    "arith",
    "_difference",
    "reduc",
    "mean",
    "s (an empty list: all)",
    "each",
    "atte",
    "rand",
    "nteger",
    "grad",
    "value",
    " is ",
    "indices",
    "transpose",
    "avg_pool",
    ", keepdim:",
    "target",
    "loss",
    "activa",
    "number",
    "shape",
    " broadcast",
    " Index",
    "where",
    "sigmoid",
    ": Size",
    " = 0",
    "_like",
    "soft",
    " are ",
    "`dim`",
    "view",
    " nan",
    "logical_",
    "_fill",
    "copy",
    "dtype",
    "floor",
    " sta",
    ": Enum<Reduc",
    "scale",
    "t_shift",
    "ound",
    "_dim",
    " bias",
    "remainder",
    "bernoulli",
    " tha",
    ", di",
    "matmul",
    "comp",
    "ther",
    "mask",
    "alpha",
    '> = \\"',
    "variance",
    ", ceil_mode:",
]


def packed(text):
    assert text.isascii() and len(PHRASES) <= 128
    for i, phrase in enumerate(PHRASES):
        text = text.replace(phrase, chr(0x80 + i))
    return text


def c_literal(text, width=4000):
    """Bytes as C strings; an octal escape is followed by no digit that it could take in."""
    quoted = "".join(
        f"\\{ord(ch):03o}" if ord(ch) > 126 else {'"': '\\"', "\\": "\\\\"}.get(ch, ch)
        for ch in text
    )
    parts, at = [], 0
    while at < len(quoted):
        end = min(at + width, len(quoted))
        while end < len(quoted) and "\\" in quoted[end - 4 : end]:  # not within an escape
            end += 1
        parts.append(f'"{quoted[at:end]}"')
        at = end
    return "\n    ".join(parts)


def generate(ops):
    full = [f"{op.name}{v}" for op in ops.values() for v in variants_of(op)]
    order = sorted(full)
    text = json.dumps(
        {"format": 1, "operators": [entry(op) for op in ops.values()]}, separators=(",", ":")
    )
    out = (
        [
            HEADER
            + '#include "dispatch/all_ops.h"\n#include "ops/gen/ops.h"\n\nnamespace TT_NS {\n',
            "// Sorted by name.",
        ]
        + [f"constinit OpInfo* const all_ops[] = {{"]
        + [f"    &op_{n}.info," for n in order]
        + [
            "};",
            f"constinit const int64_t num_all_ops = {len(order)};",
            f"constinit const char* const manifest_phrases[] = {{\n    {', '.join(c_literal(p) for p in PHRASES)}}};",
            f"constinit const char manifest_packed[] =\n    {c_literal(packed(text))};",
            f"char manifest_text[{len(text) + 1}];",
            "\n}  // namespace TT_NS\n",
        ]
    )
    return {"src/ops/gen/all_ops.cpp": "\n".join(out)}
