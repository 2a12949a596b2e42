"""Python's types of declared arguments.

Types of Python go by an underscore (`_int`) where Tensor's methods hide their names; `plain` gives
them back.
"""
import re

from codegen.model.schema import ENUMS, split_top

INTS = "_int | Sequence[_int]"
TYPES = {
    "Tensor": "Tensor",
    "Tensor!": "Tensor",
    "Tensor?": "Tensor | None",
    "Tensor!?": "Tensor | None",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "Scalar": "_complex",
    "Scalar?": "_complex | None",
    "Float": "_float",
    "Float?": "_float | None",
    "Int": "_int",
    "Int?": "_int | None",
    "Dim": "_int",
    "Dim?": "_int | None",
    "Index": "_int",
    "Index?": "_int | None",
    "Bool": "_bool",
    "Bool?": "_bool | None",
    "DType": "_dtype",
    "DType?": "_dtype | None",
    "Device": "_device | _str | None",
    "Device?": "_device | _str | None",
    "MemoryFormat": "_memory_format",
    "Generator": "Generator | None",
    "Str": "_str",
    "Dims": INTS,
    "Dims?": f"{INTS} | None",
    "Int[]": INTS,
    "Size": INTS,
    "Shape": INTS,
    "Float[]": "_float | Sequence[_float]",
    "Float[2]": "tuple[_float, _float]",
    "Tensor![]": "Params",
    "Optimizer": "Optimizer",
    "Scheduler[]": "Sequence[LRScheduler]",
}


def optional(kind):
    return kind if kind == "Any" or "None" in kind else f"{kind} | None"


def kind_of(a, number=False, of_class=False):
    """The Python type of a declared argument; a function's "none" is Python's None, a class's is
    not."""
    if a.enum:
        values = [v for v in ENUMS[a.enum] if v != "none" or a.default != '"none"' or of_class]
        kind = f"Literal[{', '.join(map(repr, values))}]"
        return optional(kind) if len(values) < len(ENUMS[a.enum]) else kind
    return "Tensor | _complex" if number else TYPES[a.type]


def plain(text):
    """The hints of functions that nothing hides a builtin name from."""
    return re.sub(r"\b_(bool|complex|float|int|str|dtype|device|memory_format)\b", r"\1", text)


def union(kinds):
    """Kinds as one, without repetitions; None comes last."""
    parts = dict.fromkeys(part for kind in kinds for part in split_top(kind, "|"))
    if "Any" in parts:
        return "Any"
    last = ["None"] if parts.pop("None", 0) is None else []
    return " | ".join([*parts, *last])
