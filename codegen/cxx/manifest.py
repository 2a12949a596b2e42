"""The machine-readable list of all operators: src/ops/gen/all_ops.cpp, which is linked only if
tt_op_find or a similar function is used, and their manifest: src/ops/gen/manifest.cpp.

The text of the manifest is packed, as bytes below 0x80 and copies of what came before:
    10LLLLLL low high    L + 4 bytes from (high << 8 | low) + 1 bytes back
    11LLLLDD low         L + 4 bytes from (D << 8 | low) + 1 bytes back
"""
import json

from codegen.c.ops import c_name, forms
from codegen.cxx.ops import HEADER, ROOT, variants_of

LEAST = 4  # bytes of a copy
NEAR = 1 << 10  # distance of a copy of two bytes, at most
FAR = 1 << 16
NEAR_LONGEST = LEAST + 15
LONGEST = LEAST + 63
KEYS = (4, 8, 16, 32)  # lengths of runs whose last place is remembered


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


def manifest(ops):
    """The text that applications get from tt_manifest."""
    entries = [entry(op) for op in ops.values()]
    text = json.dumps({"format": 1, "operators": entries}, separators=(",", ":"))
    assert text.isascii()
    return text


def earlier_runs(text):
    """For each place, (distance, length) of runs that occurred before, the longest last."""
    last = [{} for _ in KEYS]
    found = []
    for at in range(len(text)):
        runs = []
        for length, places in zip(KEYS, last):
            run = text[at : at + length]
            if len(run) == length and run in places:
                runs.append((at - places[run], length))
            places[run] = at
        if runs:
            distance, length = runs[-1]
            end = min(LONGEST, len(text) - at)
            while length < end and text[at + length - distance] == text[at + length]:
                length += 1
            runs[-1] = (distance, length)
        found.append(runs)
    return found


def copies(distance, length):
    """(bytes, length) of the copies that may begin with a run."""
    if distance <= NEAR:
        near = min(length, NEAR_LONGEST)
        yield from ((2, n) for n in (near, near - 1) if n >= LEAST)
    if distance <= FAR:
        yield from ((3, n) for n in (length, length - 1) if n >= LEAST)


def packed(text):
    """The shortest form that has the runs found."""
    runs = earlier_runs(text)
    size = [0] * (len(text) + 1)  # of the text from a place on
    best = [None] * len(text)  # bytes, length and distance of the copy that begins there
    for at in reversed(range(len(text))):
        size[at] = size[at + 1] + 1
        for distance, longest in runs[at]:
            for cost, length in copies(distance, longest):
                if size[at + length] + cost < size[at]:
                    size[at] = size[at + length] + cost
                    best[at] = (cost, length, distance)
    out = []
    at = 0
    while at < len(text):
        cost, length, distance = best[at] or (1, 1, 0)
        low, high = (distance - 1) & 0xFF, (distance - 1) >> 8
        if cost == 1:
            out.append(ord(text[at]))
        elif cost == 2:
            out += [0xC0 | (length - LEAST) << 2 | high, low]
        else:
            out += [0x80 | (length - LEAST), low, high]
        at += length
    return bytes(out)


LINE = 80  # bytes of a literal, at least


def c_literal(data):
    """Bytes as C strings."""
    escapes = {ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
    written = [
        chr(byte) if 31 < byte < 127 and byte not in escapes else escapes.get(byte, f"\\{byte:03o}")
        for byte in data
    ]
    lines = [""]
    for item in written:
        if len(lines[-1]) >= LINE:
            lines.append("")
        lines[-1] += item
    return "\n    ".join(f'"{line}"' for line in lines)


def check_schemas(ops):
    """Checks that schema_text (src/capi/manifest.cpp) finds the schema of each variant."""
    for op in ops.values():
        assert op.schema.startswith(f"{op.name}("), op.schema
        for v in variants_of(op):
            assert not v or f"{op.name}{v}" not in ops, f"{op.name}{v} is named like a variant"


def generate(ops):
    full = sorted(f"{op.name}{v}" for op in ops.values() for v in variants_of(op))
    text = manifest(ops)
    data = packed(text)
    assert len(data) < 65000, "MSVC reads no longer literal"
    check_schemas(ops)
    list_of_ops = [
        HEADER + '#include "dispatch/all_ops.h"',
        '#include "ops/gen/ops.h"',
        "",
        "namespace TT_NS {",
        "",
        "// Sorted by name.",
        "constinit OpInfo* const all_ops[] = {",
        *(f"    &op_{name}.info," for name in full),
        "};",
        f"constinit const int64_t num_all_ops = {len(full)};",
    ]
    manifest_lines = [
        HEADER + '#include "dispatch/all_ops.h"',
        "",
        "namespace TT_NS {",
        "",
        f"constinit const int64_t manifest_size = {len(data)};",
        f"constinit const char manifest_packed[] =\n    {c_literal(data)};",
        f"char manifest_text[{len(text) + 1}];",
        f"char schema_lines[{sum(len(op.schema) + 1 for op in ops.values()) + 1}];",
    ]
    end = ["", "}  // namespace TT_NS", ""]
    return {
        "src/ops/gen/all_ops.cpp": "\n".join(list_of_ops + end),
        "src/ops/gen/manifest.cpp": "\n".join(manifest_lines + end),
    }
