"""The generator names no operator: special cases are in declarations."""
import ast
import functools
import re

import pytest
from codegen.model import schema
from conftest import ROOT

# names of operators that are also words of the generator
WORDS = {
    "all": "a set of dtypes",
    "any": "a number of derivatives",
    "complex": "a kind of numbers, and a family",
    "contiguous": "a memory format",
    "eq": "a method that Python's object has",
    "full": "a filler of samples",
    "gradient": "a flag of samples",
    "index": "a family",
    "matmul": "a family",
    "max": "a limit of a dtype",
    "mean": "a moment of samples",
    "min": "a limit of a dtype",
    "ne": "a method that Python's object has",
    "norm": "a family",
    "pad": "a field of structs without a meaning",
    "positive": "a filler of samples",
    "real": "a set of dtypes, and a conversion of the Python binding",
    "softmax": "a family",
    "sort": "a family",
    "t": "a local variable",
    "to": "a field of a pointer's type",
    "view": "a key and a family",
    "where": "a word that Julia reserves",
    "zeros": "a filler of samples",
    "zeros_like": "how a formula says that a gradient is 0",
}
# what calls an operator in generated code
CALLS = re.compile(r"\b(?:op::|_ops\.|Tensor::|impl::|op_)(\w+?)_?\(")
# its tables of result types go by the names of functions
SKIPPED = {"codegen/python/sources.py"}


@functools.lru_cache
def operators():
    ops = schema.load(ROOT / "src/ops/decl", ROOT)
    return set(ops) | {op.host for op in ops.values()}


def literals(tree):
    """Text of the source that is no docstring."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


PATHS = [
    p for p in sorted((ROOT / "codegen").rglob("*.py")) if str(p.relative_to(ROOT)) not in SKIPPED
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_operator_is_named(path):
    names = operators()
    for line, text in literals(ast.parse(path.read_text())):
        found = {text} | set(CALLS.findall(text))
        named = (found & names) - set(WORDS)
        assert not named, f"line {line} names {', '.join(sorted(named))}"


def test_the_words_are_names_of_operators():
    assert set(WORDS) <= operators()
