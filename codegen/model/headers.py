"""Reads the public headers (include/*.h): what the low-level modules of bindings and the dump of the ABI are made from.

The headers are a small C: typedefs of int32_t, anonymous enums with explicit values, #defines of option bits, opaque and plain structs,
function pointers, prototypes. Anything else is an error, so that nothing is passed over silently.
"""
import re
from dataclasses import dataclass, field

HEADERS = ("tt_types.h", "tt_ops.h", "tt_nn.h", "tt_optim.h", "tt.h")
SCALARS = {"void", "char", "double", "size_t", "int32_t", "int64_t", "uint32_t", "uint64_t"}


@dataclass(frozen=True)
class Named:
    name: str  # one of SCALARS, or a typedef, struct or callback of the headers


@dataclass(frozen=True)
class Pointer:
    to: object
    const: bool  # what it points to is const


@dataclass(frozen=True)
class Array:
    of: object
    n: int


@dataclass(frozen=True)
class Function:
    """A prototype, or (behind a Field or Callback) what a function pointer points to."""

    name: str
    returns: object
    params: tuple  # of Field
    doc: str = ""  # of a prototype: the comment behind it, else that before it or its group


@dataclass(frozen=True)
class Field:
    name: str
    type: object
    doc: str = ""  # of a struct's: the comment behind it


@dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple


@dataclass(frozen=True)
class Constant:
    name: str
    value: int
    type: str  # the typedef that stands before its enum, else "int32_t"; "uint64_t": an option bit


@dataclass
class Api:
    aliases: dict = field(default_factory=dict)  # tt_status -> "int32_t"
    opaque: list = field(default_factory=list)  # names of handles
    structs: list = field(default_factory=list)
    constants: list = field(default_factory=list)
    callbacks: list = field(default_factory=list)  # Function: pointers to it are called name
    functions: list = field(default_factory=list)


class HeaderError(Exception):
    pass


HIDDEN = str.maketrans(";{}@", "\x02\x03\x04\x05")  # what means something outside of comments
SHOWN = str.maketrans("\x02\x03\x04\x05", ";{}@")


def note(mark):
    return lambda m: mark[0] + " ".join(m.group(1).split()).translate(HIDDEN) + mark[1]


def strip(text):
    """Without C++ parts and directives. Option bits become statements; a comment behind a semicolon stands before it as @text@, others
    between two \\x01."""
    text = re.sub(r";[ \t]*/\*(.*?)\*/", note((" @", "@;")), text, flags=re.S)
    text = re.sub(r"/\*(.*?)\*/", note("\x01\x01"), text, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif$", "", text, flags=re.S | re.M)
    text = re.sub(r"^#define (\w+) \(UINT64_C\(1\) << (\d+)\)$", r"bit \1 \2;", text, flags=re.M)
    return re.sub(r"^#.*$", "", text, flags=re.M)


COMMENT = re.compile(r"\x01(.*?)\x01", re.S)


def statements(text):
    """(statement, comment) of the pieces that end with a semicolon outside braces; comment: of it or of the group that it stands in."""
    depth = start = 0
    group = ""
    for i, ch in enumerate(text):
        depth += (ch == "{") - (ch == "}")
        if ch == ";" and depth == 0:
            piece = text[start:i]
            before = COMMENT.findall(piece.partition("{")[0])
            if before or piece.startswith("\n\n"):
                group = before[-1] if before and not before[-1].startswith("----") else ""
            bare = " ".join(COMMENT.sub(" ", piece).split())
            bare, own = (
                (bare, "") if bare.startswith("typedef struct") else bare.partition("@")[::2]
            )
            yield bare.strip(), (own.rstrip("@") or group).translate(SHOWN)
            if own or not bare.startswith("tt_status"):
                group = ""
            start = i + 1
    if COMMENT.sub("", text[start:]).strip():
        raise HeaderError(f"no statement: {text[start:].strip()!r}")


def split_params(text):
    depth, parts = 0, [""]
    for ch in text:
        depth += (ch == "(") - (ch == ")")
        if ch == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += ch
    return [p.strip() for p in parts]


def pointers(base, const, stars):
    """The type of `base` behind `stars`, such as "*const *"; const: `base` is."""
    for star in re.findall(r"\*\s*(?:const)?", stars):
        base, const = Pointer(base, const), "const" in star
    return base


DECL = re.compile(r"(const )?(?:struct )?(\w+)\s*((?:\*\s*(?:const\b)?\s*)*)")


def specifier(text):
    """(type, what follows it)"""
    m = DECL.match(text)
    if not m:
        raise HeaderError(f"no type: {text!r}")
    return pointers(Named(m.group(2)), bool(m.group(1)), m.group(3)), text[m.end() :].strip()


def function_pointer(text):
    """`R (*name)(params)` as a Function, None if it is something else."""
    m = re.match(r"([^()]*?)\(\*(\w+)\)\((.*)\)$", text)
    return Function(m.group(2), specifier(m.group(1))[0], params(m.group(3))) if m else None


def arrays(kind, sizes):
    for n in reversed(re.findall(r"\[(\d+)\]", sizes)):
        kind = Array(kind, int(n))
    return kind


def params(text):
    out = []
    for part in split_params(text):
        if part == "void":
            continue
        fn = function_pointer(part)
        kind, name = (fn, fn.name) if fn else specifier(part)
        if "[" in name:  # an array as a parameter is a pointer
            name, kind = name.split("[")[0], Pointer(kind, part.startswith("const "))
        out.append(Field(name, kind))
    return tuple(out)


def fields(text):
    out = []
    for part, doc in (p.strip().partition("@")[::2] for p in text.split(";")):
        part, doc = part.strip(), doc.rstrip("@").translate(SHOWN)
        if not part:
            continue
        fn = function_pointer(part)
        if fn:
            out.append(Field(fn.name, fn, doc))
            continue
        kind, names = specifier(part)
        for name in split_params(names):
            if "*" in name:
                raise HeaderError(f"one pointer per declaration: {part!r}")
            bare = name.split("[")[0]
            out.append(Field(bare, arrays(kind, name[len(bare) :]), doc))
    return tuple(out)


def constants(body, kind):
    for part in split_params(body):
        if part:
            name, value = (x.strip() for x in part.split("="))
            yield Constant(name, int(value, 0), kind)


def read(api, text):
    enum_type = "int32_t"
    for s, doc in statements(strip(text)):
        last, enum_type = enum_type, "int32_t"
        if s.startswith("bit "):
            _, name, k = s.split()
            api.constants.append(Constant(name, 1 << int(k), "uint64_t"))
        elif m := re.match(r"enum \{(.*)\}$", s):
            api.constants += constants(m.group(1), last)
        elif m := re.match(r"typedef int32_t (\w+)$", s):
            api.aliases[m.group(1)] = "int32_t"
            enum_type = m.group(1)
        elif m := re.match(r"typedef struct (\w+) \{(.*)\} (\w+)(?: @.*@)?$", s):
            api.structs.append(Struct(m.group(1), fields(m.group(2))))
        elif m := re.match(r"typedef struct (\w+) (\w+)(?: @.*@)?$", s):
            api.opaque.append(m.group(1))
        elif s.startswith("typedef "):
            fn = function_pointer(s[len("typedef ") :])
            if not fn:
                raise HeaderError(f"unknown typedef: {s!r}")
            api.callbacks.append(fn)
        elif m := re.match(r"([^()]*?)(\w+)\((.*)\)$", s):
            api.functions.append(
                Function(m.group(2), specifier(m.group(1))[0], params(m.group(3)), doc)
            )
        else:
            raise HeaderError(f"unknown: {s!r}")


def names_in(kind):
    if isinstance(kind, Named):
        return {kind.name}
    if isinstance(kind, Function):
        return names_in(kind.returns).union(*(names_in(p.type) for p in kind.params))
    return names_in(kind.to if isinstance(kind, Pointer) else kind.of)


def parse(texts):
    """The Api of the texts of the headers, in the order of HEADERS; every name that a type uses is known."""
    api = Api()
    for text in texts:
        read(api, text)
    known = (
        SCALARS | set(api.aliases) | set(api.opaque) | {x.name for x in api.structs + api.callbacks}
    )
    used = [f.type for s in api.structs for f in s.fields] + api.callbacks + api.functions
    for kind in used:
        if names_in(kind) - known:
            raise HeaderError(f"{kind}: unknown {names_in(kind) - known}")
    return api


def load(root, files):
    """The Api of include/*.h, generated headers as they stand in `files` (path -> text)."""
    return parse(files.get(f"include/{h}") or (root / "include" / h).read_text() for h in HEADERS)


# ---- the dump ----


def abi_dump(api):
    out = [
        "/* Generated by codegen/gen.py from include. Do not edit.",
        '   Prints the ABI: "struct name size", "field struct.name offset", "constant name value", for bindings to compare with. */',
        "#include <stddef.h>",
        "#include <stdio.h>",
        "",
        '#include "tt.h"',
        "",
        '#define S(s) printf("struct " #s " %d\\n", (int)sizeof(s))',
        '#define F(s, f) printf("field " #s "." #f " %d\\n", (int)offsetof(s, f))',
        '#define C(c) printf("constant " #c " %lld\\n", (long long)(c))',
        "",
        "int main(void) {",
    ]
    for s in api.structs:
        out.append(f"  S({s.name});")
        out += [f"  F({s.name}, {f.name});" for f in s.fields]
    out += [f"  C({c.name});" for c in api.constants]
    return "\n".join(out + ["  return 0;", "}", ""])


def generate(api):
    return {"tests/gen/abi_dump.c": abi_dump(api)}
