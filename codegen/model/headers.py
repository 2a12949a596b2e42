"""Reads the public headers (include/*.h): what the bindings, their documentation and the dump of
the ABI are made from.

The headers are a small C: typedefs of int32_t, anonymous enums with explicit values, #defines of
option bits, opaque and plain structs, function pointers, prototypes. Anything else is an error, so
that nothing is passed over silently. The comment before a declaration, or behind it on its line,
documents it (docs.py); prototypes that follow one another without an empty line share one. Every
function of tt.h has a comment, and one that returns a pointer says how long it is valid.
"""
import re
from dataclasses import dataclass, field

from codegen.model import docs
from codegen.model.docs import Doc

HEADERS = ("tt_types.h", "tt_ops.h", "tt_nn.h", "tt_optim.h", "tt.h")
SCALARS = {"void", "char", "double", "size_t", "int32_t", "int64_t", "uint32_t", "uint64_t"}


@dataclass(frozen=True)
class Named:
    name: str  # one of SCALARS, or a typedef, struct or callback of the headers


@dataclass(frozen=True)
class Pointer:
    to: object
    const: bool  # the pointee is const


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
    doc: Doc = field(default_factory=Doc, compare=False)
    header: str = ""


@dataclass(frozen=True)
class Field:
    name: str
    type: object
    doc: str = field(default="", compare=False)


@dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple
    doc: str = ""


@dataclass(frozen=True)
class Constant:
    name: str
    value: int
    type: str  # the typedef before its enum, else "int32_t"; "uint64_t": an option bit
    doc: str = ""


@dataclass
class Api:
    aliases: dict = field(default_factory=dict)  # tt_status -> "int32_t"
    opaque: list = field(default_factory=list)  # names of handles
    structs: list = field(default_factory=list)
    constants: list = field(default_factory=list)
    callbacks: list = field(default_factory=list)  # Function: pointers to it are called name
    functions: list = field(default_factory=list)
    docs: dict = field(default_factory=dict)  # typedef or handle -> its text


class HeaderError(Exception):
    pass


# ---- statements and their comments ----

MARK = re.compile("\x01(\\d+)\x01")


class Source:
    """The text of a header in which each comment is a number between two \\x01."""

    def __init__(self, text):
        self.comments = []
        text = re.sub(r"/\*(.*?)\*/", self.keep, text, flags=re.S)
        text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif$", "", text, flags=re.S | re.M)
        bit = r"^#define (\w+) \(UINT64_C\(1\) << (\d+)\)(?=[ \t]*\x01|$)"
        text = re.sub(bit, r"bit \1 \2;", text, flags=re.M)
        self.text = re.sub(r"^#.*$", "", text, flags=re.M)

    def keep(self, match):
        self.comments.append(match.group(1).strip())
        return f"\x01{len(self.comments) - 1}\x01"

    def pieces(self, text, end=";"):
        """[code, comment] of what ends with `end` outside of braces and parentheses."""
        found = []
        depth = 0
        start = 0
        for i, ch in enumerate(text):
            depth += (ch in "{(") - (ch in "})")
            if ch == end and depth == 0:
                self.take(found, text[start:i])
                start = i + 1
        self.take(found, text[start:], last=True)
        return found

    def take(self, found, text, last=False):
        """Adds a piece. A comment at its start, on the line of the piece before, belongs to
        that."""
        behind = re.match(r"[ \t]*" + MARK.pattern, text)
        if behind and found:
            found[-1][1] = found[-1][1] or self.comments[int(behind.group(1))]
            text = text[behind.end() :]
        lead = re.match(rf"(?:\s|{MARK.pattern})*", text).group()
        code = text[len(lead) :]
        if last and code.strip():
            behind = MARK.search(code)
            comment = self.comments[int(behind.group(1))] if behind else ""
            code = MARK.sub("", code)
        else:
            comment = self.leading(lead)
        shared = found and not comment and lead == "\n" and "(" in code
        if code.strip():
            found.append([code, found[-1][1] if shared else comment])

    def leading(self, lead):
        """The comment right before a piece of code; a title or a comment of a section is none."""
        marks = list(MARK.finditer(lead))
        if not marks or "\n\n" in lead[marks[-1].end() :]:
            return ""
        comment = self.comments[int(marks[-1].group(1))]
        return "" if comment.startswith("----") else comment

    def bare(self, text):
        return " ".join(MARK.sub(" ", text).split())


def split_params(text):
    depth = 0
    parts = [""]
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
        base = Pointer(base, const)
        const = "const" in star
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
            name = name.split("[")[0]
            kind = Pointer(kind, part.startswith("const "))
        out.append(Field(name, kind))
    return tuple(out)


def fields(source, text):
    out = []
    for part, comment in source.pieces(text):
        part = source.bare(part)
        doc = " ".join(comment.split())
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


def constants(source, text, kind):
    for part, comment in source.pieces(text, ","):
        name, value = (x.strip() for x in source.bare(part).split("="))
        yield Constant(name, int(value, 0), kind, " ".join(comment.split()))


def read(api, text, header):
    source = Source(text)
    if not source.text.rstrip(" \n").endswith((";", "\x01")) and source.bare(source.text):
        raise HeaderError(f"no statement at the end of {header}")
    enum_type = "int32_t"
    for code, comment in source.pieces(source.text):
        last = enum_type
        enum_type = "int32_t"
        statement = source.bare(code)
        inside = code[code.find("{") + 1 : code.rfind("}")]
        try:
            doc = docs.read(comment)
        except docs.DocError as error:
            raise HeaderError(f"{statement}: {error}") from None
        if statement.startswith("bit "):
            _, name, k = statement.split()
            api.constants.append(Constant(name, 1 << int(k), "uint64_t"))
        elif re.match(r"enum \{.*\}$", statement):
            api.constants += constants(source, inside, last)
        elif m := re.match(r"typedef int32_t (\w+)$", statement):
            api.aliases[m.group(1)] = "int32_t"
            api.docs[m.group(1)] = doc.text
            enum_type = m.group(1)
        elif m := re.match(r"typedef struct (\w+) \{.*\} \w+$", statement):
            api.structs.append(Struct(m.group(1), fields(source, inside), doc.text))
        elif m := re.match(r"typedef struct (\w+) \w+$", statement):
            api.opaque.append(m.group(1))
            api.docs[m.group(1)] = doc.text
        elif statement.startswith("typedef "):
            fn = function_pointer(statement[len("typedef ") :])
            if not fn:
                raise HeaderError(f"unknown typedef: {statement!r}")
            api.callbacks.append(fn)
        elif m := re.match(r"([^()]*?)(\w+)\((.*)\)$", statement):
            returns = specifier(m.group(1))[0]
            name = m.group(2)
            given = params(m.group(3))
            api.functions.append(Function(name, returns, given, doc, header))
        else:
            raise HeaderError(f"unknown: {statement!r}")


def names_in(kind):
    if isinstance(kind, Named):
        return {kind.name}
    if isinstance(kind, Function):
        return names_in(kind.returns).union(*(names_in(p.type) for p in kind.params))
    return names_in(kind.to if isinstance(kind, Pointer) else kind.of)


def check_doc(fn):
    """Checks that a function of tt.h has a comment, and that its tags name its parameters."""
    names = {p.name for p in fn.params} | {docs.RETURNED}
    if not fn.doc:
        raise HeaderError(f"{fn.name}: no comment says what it does")
    for tag, given in (("null", fn.doc.null), ("number", fn.doc.numbers)):
        for name in given:
            if name not in names:
                raise HeaderError(f"{fn.name}: @{tag} names {name!r}, which it does not have")
    if isinstance(fn.returns, Pointer) != bool(fn.doc.borrowed):
        raise HeaderError(f"{fn.name}: @borrowed is for functions that return a pointer")


def parse(texts):
    """Parses the headers (name -> text) to an Api. Raises if a type uses an unknown name."""
    api = Api()
    for header, text in texts.items():
        read(api, text, header)
    known = SCALARS | set(api.aliases) | set(api.opaque)
    known |= {x.name for x in api.structs + api.callbacks}
    used = [f.type for s in api.structs for f in s.fields] + api.callbacks + api.functions
    for kind in used:
        if names_in(kind) - known:
            raise HeaderError(f"{kind}: unknown {names_in(kind) - known}")
    for fn in api.functions:
        if fn.header == "tt.h":
            check_doc(fn)
    return api


def load(root, files):
    """The Api of include/*.h; generated headers are taken from `files` (path -> text)."""
    paths = {name: f"include/{name}" for name in HEADERS}
    return parse({n: files.get(p) or (root / p).read_text() for n, p in paths.items()})
