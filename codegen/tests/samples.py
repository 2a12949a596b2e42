"""Reads the samples of the op table (tests/op_table/samples/*.toml), checks them against the
schemas of the operators that use them, and writes them as a C table. The README beside them
explains the lines."""
import difflib
import json
import math
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from codegen.cxx.ops import HEADER
from codegen.model.schema import ENUMS

FOLDER = "tests/op_table/samples"
DTYPES = {
    "bool": "TT_BOOL",
    "uint8": "TT_U8",
    "int8": "TT_I8",
    "int16": "TT_I16",
    "int32": "TT_I32",
    "int64": "TT_I64",
    "float16": "TT_F16",
    "bfloat16": "TT_BF16",
    "float32": "TT_F32",
    "float64": "TT_F64",
    "complex64": "TT_C64",
    "complex128": "TT_C128",
}
# Each filler is a case of `element` in tests/op_table/samples.c.
FILLERS = {
    "zeros": "kZeros",
    "full": "kFull",
    "signed": "kSigned",
    "positive": "kPositive",
    "unit": "kUnit",
    "small": "kSmall",
    "wide": "kWide",
    "low": "kLow",
    "high": "kHigh",
    "probability": "kProbability",
    "chance": "kChance",
    "few": "kFew",
    "special": "kSpecial",
    "special_other": "kSpecialOther",
    "holes": "kHoles",
    "slow_ramp": "kSlowRamp",
    "stairs": "kStairs",
    "bits": "kBits",
    "signed_bits": "kSignedBits",
    "other_bits": "kOtherBits",
    "indices": "kIndices",
    "mask": "kMask",
}
PARAMETER = {"indices": "below", "full": "with"}  # the word before a filler's number
FILLER_DTYPES = {"indices": "int64", "mask": "bool"}  # others make float64
FLAGS = ("gradient", "special", "big", "once")
GROUP_KEYS = {
    "samples",
    "include",
    "also",
    "summed",
    "shape_from_values",
    "no_gradient",
    "drawn",
    "no_half",
}
DRAWN_KEYS = {
    "low",
    "high",
    "integers",
    "mean",
    "variance",
    "tolerance",
    "ulps",
    "share",
    "permutation",
    "weights",
}
ALIASES = {"self": 0, "other": 1}
# Sizes of arrays in tests/op_table/op_table.h and samples.c.
MAX_DIMS = 5
MAX_ITEMS = 24
MAX_NO_GRADIENT = 2


class SampleError(Exception):
    pass


@dataclass
class Line:
    """One sample: its arguments as written and its flags."""

    where: str
    args: dict
    flags: set
    repeats: bool = False  # made by `also`: the tensors of the line before, once more


@dataclass
class Group:
    name: str
    family: str  # the file that it is in
    where: str
    keys: dict = field(repr=False)
    lines: list = field(default_factory=list)


# ---- reading ----


def load(root):
    """The groups of all files by name, with the lines that `include` and `also` stand for."""
    groups = {}
    for path in sorted(Path(root, FOLDER).glob("*.toml")):
        for name, keys in tomllib.loads(path.read_text()).items():
            add_group(groups, name, path.stem, keys)
    for group in groups.values():
        group.lines = lines_of(group, groups, ())
    return groups


def add_group(groups, name, family, keys):
    where = f"{family}.toml: [{name}]"
    if name in groups:
        raise SampleError(f"{where} is already in {groups[name].where}")
    if not isinstance(keys, dict):
        raise SampleError(f"{where} is no table")
    for key in keys:
        if key not in GROUP_KEYS:
            raise SampleError(f"{where}: unknown key {key!r}{meant(key, GROUP_KEYS)}")
    for key in keys.get("drawn", {}):
        if key not in DRAWN_KEYS:
            raise SampleError(f"{where}: unknown key {key!r} of drawn{meant(key, DRAWN_KEYS)}")
    if ("low" in keys.get("drawn", {})) != ("high" in keys.get("drawn", {})):
        raise SampleError(f"{where}: drawn has low and high, or neither")
    groups[name] = Group(name, family, where, keys)


def lines_of(group, groups, seen):
    """The lines of a group: first those it includes, then its own, each followed by its `also`."""
    if group.name in seen:
        raise SampleError(f"{group.where} includes itself")
    lines = []
    if "include" in group.keys:
        name = group.keys["include"]
        if name not in groups:
            hint = meant(name, groups)
            raise SampleError(f"{group.where} includes {name!r}, which is no group{hint}")
        lines += lines_of(groups[name], groups, (*seen, group.name))
    for number, sample in enumerate(group.keys.get("samples", []), 1):
        lines.append(read_line(f"{group.where} sample {number}", sample))
    if not lines:
        raise SampleError(f"{group.where} has no samples")
    return [line for first in lines for line in with_variants(group, first)]


def with_variants(group, line):
    yield line
    if "once" in line.flags:
        return
    for arguments in group.keys.get("also", []):
        yield Line(f"{line.where} with also", arguments, line.flags, repeats=True)


def read_line(where, sample):
    if not isinstance(sample, dict):
        raise SampleError(f"{where} is no table {{ argument = value, … }}")
    for flag in FLAGS:
        if sample.get(flag, True) is not True:
            raise SampleError(f"{where}: {flag} is given as true or left out")
    args = {name: value for name, value in sample.items() if name not in FLAGS}
    return Line(where, args, set(sample) & set(FLAGS))


def meant(name, known):
    close = difflib.get_close_matches(str(name), list(known), 1)
    return f"; is it {close[0]!r}?" if close else ""


# ---- values: each becomes the initializer of a SampleArg ----


class NeedsNumber(Exception):
    """The operator takes a number where the line has only a tensor: the line does not apply to
    it."""


def number(value):
    if math.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    return "NAN" if math.isnan(value) else repr(value)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number_fields(value):
    return f"INTEGER({value})" if isinstance(value, int) else f"FLOAT({number(value)})"


def flatten(where, data):
    """(shape, elements, dtype) of nested lists; integers are indices and bools are masks."""
    if not isinstance(data, list):
        kinds = {bool: "bool", int: "int64", float: "float64"}
        if type(data) not in kinds:
            raise SampleError(f"{where}: {data!r} is no element of a tensor")
        return (), [data], kinds[type(data)]
    parts = [flatten(where, part) for part in data]
    if not parts:
        raise SampleError(f"{where}: write an empty tensor as signed(0)")
    if len({shape for shape, _, _ in parts}) > 1 or len({dtype for _, _, dtype in parts}) > 1:
        raise SampleError(f"{where}: {data} is ragged or mixes integers, floats and bools")
    elements = [element for _, part, _ in parts for element in part]
    return (len(parts), *parts[0][0]), elements, parts[0][2]


SPEC = re.compile(r"(\w+)\(([\d, ]*)\)(?: (below|with) (\S+))?(?: as (\w+))?$")


def tensor_spec(where, text):
    """The initializer of a TensorSpec, from nested lists or from the text of a filler."""
    if not isinstance(text, str):
        shape, elements, dtype = flatten(where, text)
        values = ", ".join(number(element * 1) for element in elements)
        return spec_fields(where, "kData", dtype, shape, f".data = DOUBLES({values})")
    m = SPEC.match(text)
    if not m:
        raise SampleError(f"{where}: {text!r} is not FILLER(SHAPE) [below N | with X] [as DTYPE]")
    filler, shape, word, parameter, dtype = m.groups()
    if filler not in FILLERS:
        raise SampleError(f"{where}: unknown filler {filler!r}{meant(filler, FILLERS)}")
    wanted = PARAMETER.get(filler)
    if word != wanted:
        problem = f"needs '{wanted} N'" if wanted else f"takes no '{word}'"
        raise SampleError(f"{where}: {filler}(…) {problem}")
    dtype = dtype or FILLER_DTYPES.get(filler, "float64")
    if dtype not in DTYPES:
        raise SampleError(f"{where}: unknown dtype {dtype!r}{meant(dtype, DTYPES)}")
    dims = tuple(int(size) for size in shape.split(",") if size)
    more = f".parameter = {number(float(parameter))}" if word else ""
    return spec_fields(where, FILLERS[filler], dtype, dims, more)


def spec_fields(where, filler, dtype, shape, more):
    if len(shape) > MAX_DIMS:
        raise SampleError(f"{where}: at most {MAX_DIMS} dimensions")
    fields = [filler, DTYPES[dtype], str(len(shape))]
    fields.append("{" + (", ".join(map(str, shape)) or "0") + "}")
    return "{" + ", ".join(fields + [more] * bool(more)) + "}"


def tensor(where, value):
    """A tensor: a number is 0-dim, and 'TENSOR or NUMBER' is for operators that take either."""
    if is_number(value):
        return f"kNumberArg, {number_fields(value)}"
    tail = ""
    if isinstance(value, str) and " or " in value:
        value, otherwise = value.rsplit(" or ", 1)
        if not is_number(literal(where, otherwise)):
            raise SampleError(f"{where}: {otherwise!r} behind 'or' is no number")
        tail = ", " + number_fields(literal(where, otherwise))
    if isinstance(value, str) and value.startswith("["):
        value = literal(where, value)
    spec = tensor_spec(where, value)
    return f"kTensorArg, TENSORS({spec}){tail}"


def literal(where, text):
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        raise SampleError(f"{where}: {text!r} is no value") from None


def tensors(where, value):
    if not isinstance(value, list) or not 0 < len(value) <= MAX_ITEMS:
        raise SampleError(f"{where} is a list of 1 to {MAX_ITEMS} tensors, not {value!r}")
    specs = ", ".join(tensor_spec(where, item) for item in value)
    return f"kTensorsArg, TENSORS({specs})"


def scalar(where, value):
    if isinstance(value, str):
        if " or " not in value:
            raise NeedsNumber
        return tensor(where, value)
    if not is_number(value):
        raise SampleError(f"{where} is a number, not {value!r}")
    return f"kNumberArg, {number_fields(value)}"


def integer(where, value):
    if not isinstance(value, int) or isinstance(value, bool):
        raise SampleError(f"{where} is an integer, not {value!r}")
    return f"kNumberArg, {number_fields(value)}"


def boolean(where, value):
    if not isinstance(value, bool):
        raise SampleError(f"{where} is true or false, not {value!r}")
    return f"kNumberArg, {number_fields(int(value))}"


def integers(where, value):
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise SampleError(f"{where} is a list of integers, not {value!r}")
    return f"kIntegersArg, INTEGERS({', '.join(map(str, value))})" if value else "kIntegersArg"


def text(where, value):
    if not isinstance(value, str):
        raise SampleError(f"{where} is a string, not {value!r}")
    return f"kTextArg, .text = {json.dumps(value)}"


def choice(where, value, known, code):
    if value not in known:
        names = ", ".join(known)
        raise SampleError(f"{where} is one of {names}; not {value!r}")
    return f"kNumberArg, INTEGER({code(value)})"


KINDS = {
    "Tensor": tensor,
    "Tensor!": tensor,
    "Tensor[]": tensors,
    "Tensor?[]": tensors,
    "Scalar": scalar,
    "Float": scalar,
    "Int": integer,
    "Dim": integer,
    "Index": integer,
    "Bool": boolean,
    "Dims": integers,
    "Size": integers,
    "Shape": integers,
    "Int[]": integers,
    "Str": text,
}


def encode(where, arg, value):
    """The fields of a SampleArg after its name, checked against the type of the argument."""
    where = f"{where}: {arg.name}"
    if arg.enum:
        values = ENUMS[arg.enum]
        return choice(where, value, values, lambda name: values[name])
    kind = arg.type.removesuffix("?")
    if kind == "DType":
        return choice(where, value, DTYPES, lambda name: DTYPES[name])
    if kind not in KINDS:
        raise SampleError(f"{where} is a {arg.type}, which samples cannot give")
    return KINDS[kind](where, value)


# ---- checking a group against its operators ----


def argument(op, name):
    """The argument that a line calls `name`; self and other also mean the first and the second."""
    place = ALIASES.get(name, len(op.args))
    return op.arg(name) or (op.args[place] if place < len(op.args) else None)


def encode_line(op, line):
    """{name: fields} of a line for one operator; None if the line is not for it."""
    where = f"{line.where}, {op.name}"
    encoded = {}
    given = set()
    for name, value in line.args.items():
        arg = argument(op, name)
        if not arg:
            known = ", ".join(a.name for a in op.args)
            raise SampleError(f"{where}: no argument {name!r} (there are {known})")
        given.add(arg.name)
        try:
            encoded[name] = encode(where, arg, value)
        except NeedsNumber:
            return None
    for arg in op.args:
        required = arg.default is None and not arg.type.endswith("?")
        if required and arg.name not in given and not line.repeats:
            raise SampleError(f"{where}: {arg.name!r} has no value")
    return encoded


def encode_group(group, ops):
    """Encodes the lines of a group; a line must mean the same to all operators that it applies
    to."""
    encoded = [None] * len(group.lines)
    for op in ops:
        lines = [encode_line(op, line) for line in group.lines]
        if not any(line is not None for line in lines):
            raise SampleError(f"{group.where}: no sample is for {op.name}")
        for k, line in enumerate(lines):
            if line is not None and encoded[k] not in (None, line):
                raise SampleError(
                    f"{group.lines[k].where} means something else to {op.name} than to "
                    f"{ops[0].name}: give it a group of its own"
                )
            encoded[k] = line if encoded[k] is None else encoded[k]
    for k, line in enumerate(encoded):
        if line is None:
            raise SampleError(f"{group.lines[k].where} is for no operator of the group")
    return encoded


def check_group(group, ops):
    families = {op.family for op in ops}
    if group.family not in families:
        raise SampleError(f"{group.where} is for operators of {', '.join(sorted(families))}")
    names = group.keys.get("no_gradient", [])
    if len(names) > MAX_NO_GRADIENT:
        raise SampleError(f"{group.where}: no_gradient names more than {MAX_NO_GRADIENT} arguments")
    for name in names:
        if not any(op.arg(name) for op in ops):
            raise SampleError(f"{group.where}: no_gradient names {name!r}, which is no argument")


def users(groups, ops):
    """The operators of each group. Every operator has a group, and every group is used or
    included."""
    used = {name: [] for name in groups}
    for op in ops.values():
        if op.internal:
            continue
        name = op.get("samples")
        if name not in groups:
            hint = meant(name, groups)
            raise SampleError(f"{op.name}: samples = {name!r} names no group of {FOLDER}{hint}")
        used[name].append(op)
    included = {group.keys.get("include") for group in groups.values()}
    for name, operators in used.items():
        if not operators and name not in included:
            raise SampleError(f"{groups[name].where} is used by no operator")
    return used


# ---- writing ----


def shown(value):
    """A value as written in TOML, for messages of failed samples."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)


def c_line(line, encoded):
    source = ", ".join(f"{name} = {shown(value)}" for name, value in line.args.items())
    args = ", ".join(f'{{"{name}", {fields}}}' for name, fields in encoded.items())
    parts = [json.dumps(source, ensure_ascii=False), f"ARGS({args})"]
    parts += [f".{flag} = 1" for flag in FLAGS if flag in line.flags and flag != "once"]
    parts += [".repeats = 1"] * line.repeats
    return "  {" + ", ".join(parts) + "},"


def c_drawn(drawn):
    fields = []
    for key, value in drawn.items():
        if key == "weights":
            values = ", ".join(number(float(v)) for v in value)
            fields.append(f".weights = DOUBLES({values}), .n_weights = {len(value)}")
        else:
            fields.append(f".{key} = {number(value * 1)}")
            if key in ("low", "mean", "variance"):
                fields.append(f".has_{key} = 1")
    return f"&(const Drawn){{{', '.join(fields) or '0'}}}"


def c_group(group):
    keys = group.keys
    fields = [f'"{group.name}"', f"lines_{group.name}", str(len(group.lines))]
    fields += [f".{key} = 1" for key in ("summed", "shape_from_values", "no_half") if keys.get(key)]
    if keys.get("no_gradient"):
        names = ", ".join(json.dumps(name) for name in keys["no_gradient"])
        fields.append(f".no_gradient = {{{names}}}")
    if "drawn" in keys:
        fields.append(f".drawn = {c_drawn(keys['drawn'])}")
    return "  {" + ", ".join(fields) + "},"


def generate(root, ops):
    groups = load(root)
    tables = []
    index = []
    for name, operators in users(groups, ops).items():
        if not operators:
            continue
        group = groups[name]
        check_group(group, operators)
        encoded = encode_group(group, operators)
        lines = [c_line(line, args) for line, args in zip(group.lines, encoded)]
        tables += [f"static const SampleLine lines_{name}[] = {{", *lines, "};"]
        index.append(c_group(group))
    body = "\n".join([*tables, "static const SampleGroup kGroups[] = {", *index, "};"])
    header = HEADER.replace("src/ops/decl", FOLDER)
    return {"tests/gen/op_samples.inc": header + body + "\n"}
