"""Which dtypes an operator takes: its samples of the op table, called by name in each dtype."""
import ast
import re
import sys
from pathlib import Path

import pytest
import tt

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from codegen.model import dtypes, schema  # noqa: E402
from codegen.tests import samples  # noqa: E402

OPERATORS = schema.load(ROOT / "src/ops/decl", ROOT)
GROUPS = samples.load(ROOT)
TENSOR = re.compile(r"(\w+)\(([\d, ]*)\)(?: below \d+)?(?: with [\d.]+)?(?: as (\w+))?")
ALIASES = dict(enumerate(samples.ALIASES))
FIXED = {"indices": tt.int64, "mask": tt.bool}  # fillers that have a dtype of their own


def tensor(value, dtype):
    """A tensor of a sample in this dtype, if the sample leaves the dtype open."""
    if isinstance(value, str) and value.startswith("["):
        value = ast.literal_eval(value.split(" or ")[0])
    if isinstance(value, str):
        filler, sizes, converted = TENSOR.match(value).groups()
        shape = [int(size) for size in sizes.split(",") if size.strip()]
        own = getattr(tt, converted) if converted else FIXED.get(filler, dtype)
        return tt.zeros(shape, dtype=own) if filler in FIXED else tt.full(shape, 0.5).to(own)
    made = tt.tensor(value)
    return made.to(dtype) if made.is_floating_point() else made


def value_of(arg, value, dtype):
    if value is None:
        return None
    if arg.is_tensor:
        return tensor(value, dtype)
    if isinstance(value, str) and " or " in value:
        return ast.literal_eval(value.split(" or ")[1])
    if arg.is_tensorish:
        return [None if v is None else tensor(v, dtype) for v in value]
    if arg.enum:
        return schema.ENUMS[arg.enum][value]
    return getattr(tt, value) if arg.type in ("DType", "DType?") else value


def leaves_open(line):
    """Whether a tensor of the line has no dtype of its own."""
    texts = [text for text in line.args.values() if isinstance(text, str) and "(" in text]
    closed = [text for text in texts if " as " in text or text.split("(")[0] in FIXED]
    return not texts or len(closed) < len(texts)


def arguments(op, line, dtype):
    """By position, without those at the end that have their defaults."""
    given = []
    for place, arg in enumerate(op.args):
        value = line.args.get(arg.name, line.args.get(ALIASES.get(place)))
        given.append(value_of(arg, value, dtype))
    while given and given[-1] is None:
        given.pop()
    return given


def accepts(op, dtype):
    """Whether one of the samples can be computed in this dtype."""
    function = tt.library.find(op.name)
    for line in GROUPS[op.get("samples")].lines:
        if line.flags & {"big", "special"} or not leaves_open(line):
            continue
        try:
            function(*arguments(op, line, dtype))
            return True
        except tt.errors.TtError:
            pass
    return False


def accepted(op):
    return {name for name in dtypes.NAMES if accepts(op, getattr(tt, name))}


# their samples draw negative numbers, which bool and uint8 do not hold
NEGATIVE = {"randint_like", "random_"}
CHECKED = [
    op
    for op in OPERATORS.values()
    if not op.internal and not op.scalar_of and dtypes.words_of(op) and op.name not in NEGATIVE
    if any(leaves_open(line) for line in GROUPS[op.get("samples")].lines)
    if any(arg.is_tensorish for arg in op.args)
]


@pytest.mark.parametrize("op", CHECKED, ids=lambda op: op.name)
def test_takes_the_declared_dtypes(op):
    assert accepted(op) == dtypes.names_of(dtypes.words_of(op))
