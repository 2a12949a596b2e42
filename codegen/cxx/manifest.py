"""The machine-readable list of all operators: src/ops/gen/all_ops.cpp, which is linked only if
tt_op_find, tt_manifest or a similar function is used.

The text of the manifest is packed: byte 0x80 + i stands for phrase i. The phrases are data
(src/ops/manifest_phrases.json); `gen.py --phrases` chooses them anew, which changes nothing but the
size of the packed text.
"""
import json
import re
from collections import Counter

from codegen.c.ops import c_name, forms
from codegen.cxx.ops import HEADER, ROOT, variants_of

PHRASES = "src/ops/manifest_phrases.json"
MAX_PHRASES = 128
LONGEST = 12  # words of a phrase, at most
POINTER = 9  # bytes that a phrase costs in addition to its text


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


def packed(text, phrases):
    assert len(phrases) <= MAX_PHRASES
    for i, phrase in enumerate(phrases):
        text = text.replace(phrase, chr(0x80 + i))
    return text


def phrase_counts(text):
    """Runs of words without a phrase so far -> how often they occur."""
    words = re.findall(r"[a-z0-9]+|[^a-z0-9]", text)
    counts = Counter()
    for start in range(len(words)):
        phrase = ""
        for word in words[start : start + LONGEST]:
            if ord(word[0]) >= 0x80:
                break
            phrase += word
            counts[phrase] += 1
    return counts


def choose_phrases(text):
    """Chooses phrases greedily: at each step the one that saves the most bytes."""
    chosen = []
    while len(chosen) < MAX_PHRASES:
        counts = phrase_counts(packed(text, chosen))
        saving = {p: n * (len(p) - 1) - len(p) - POINTER for p, n in counts.items()}
        chosen.append(max(sorted(saving), key=saving.get))
    return chosen


def write_phrases(ops):
    text = json.dumps(choose_phrases(manifest(ops)), indent=0)
    (ROOT / PHRASES).write_text(text + "\n")


def c_literal(text, width=4000):
    """Bytes as C strings. No octal escape is followed by a digit, which would become part of it."""
    quoted = "".join(
        f"\\{ord(ch):03o}" if ord(ch) > 126 else {'"': '\\"', "\\": "\\\\"}.get(ch, ch)
        for ch in text
    )
    parts = []
    at = 0
    while at < len(quoted):
        end = min(at + width, len(quoted))
        while end < len(quoted) and "\\" in quoted[end - 4 : end]:  # not within an escape
            end += 1
        parts.append(f'"{quoted[at:end]}"')
        at = end
    return "\n    ".join(parts)


PIECE = 16000  # bytes of a literal that every compiler reads


def packed_pieces(text):
    """The lines of manifest_packed."""
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    literals = ",\n    ".join(c_literal(piece) for piece in pieces)
    return [f"constinit const char* const manifest_packed[] = {{\n    {literals}, nullptr}};"]


def generate(ops):
    full = sorted(f"{op.name}{v}" for op in ops.values() for v in variants_of(op))
    text = manifest(ops)
    phrases = json.loads((ROOT / PHRASES).read_text())
    literals = ", ".join(c_literal(p) for p in phrases)
    lines = [
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
        f"constinit const char* const manifest_phrases[] = {{\n    {literals}}};",
        *packed_pieces(packed(text, phrases)),
        f"char manifest_text[{len(text) + 1}];",
        "",
        "}  // namespace TT_NS",
        "",
    ]
    return {"src/ops/gen/all_ops.cpp": "\n".join(lines)}
