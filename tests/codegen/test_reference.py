"""docs/reference has a section for every operator, layer, optimizer and schedule, with all
arguments."""
import re

import pytest
from codegen.c import classes
from codegen.cxx.ops import api_name
from codegen.docs.messages import Messages
from codegen.model import schema
from conftest import ROOT

PAGES = sorted((ROOT / "docs/reference").glob("*.md"))
OPERATORS = [op for op in schema.load(ROOT / "src/ops/decl", ROOT).values() if not op.internal]
# an operator's form for numbers is described with the operator
DESCRIBED = [op for op in OPERATORS if not op.scalar_of or op.get("overload_of")]
NUMBERS = [op for op in OPERATORS if op not in DESCRIBED]
CLASSES = [cls for group in classes.load_classes(ROOT).values() for cls in group]


def sections():
    """(page, heading) -> text"""
    found = {}
    for path in PAGES:
        for part in re.split(r"^## ", path.read_text(), flags=re.M)[1:]:
            heading, _, text = part.partition("\n")
            found[path.stem, heading] = text
    return found


SECTIONS = sections()


def rows(text):
    """(first cell, number of other cells) -> the other cells of the tables."""
    cells = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in text.splitlines()]
    return {(row[0].strip("`"), len(row) - 1): row[1:] for row in cells if len(row) > 1}


def check(text, declared):
    found = rows(text)
    for a in declared.args:
        words, default, meaning = found[a.name, 3]
        assert words and default and meaning
        assert (default == "required") == (a.default is None)
        assert not a.doc or a.doc.split()[0] in meaning
    assert f"`tt_{api_name(declared).removesuffix('_')}" in text


@pytest.mark.parametrize("op", DESCRIBED, ids=lambda op: op.name)
def test_operator(op):
    text = SECTIONS[op.family, op.name]
    check(text, op)
    assert "Gradient: " in text
    assert re.search(r"^Results?: ", text, re.M)
    assert op.void or "shape: " in " ".join(text.split())


@pytest.mark.parametrize("op", NUMBERS, ids=lambda op: op.name)
def test_form_for_numbers(op):
    text = SECTIONS[op.family, op.scalar_of]
    assert f"`tt_{op.scalar_of}_scalar`" in text
    assert "or number" in rows(text)[op.scalar_arg, 3][0]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_class(cls):
    page = {"nn": "layers", "optim": "optimizers", "lr": "schedules"}[cls.name.split("_")[0]]
    text = SECTIONS[page, cls.host]
    check(text, cls)
    for slot in cls.get("slots", []):
        kind, shape = rows(text)[slot.strip("@?"), 2]
        assert ("buffer" in kind) == slot.startswith("@")
        assert shape
    takes_inputs = page == "layers" and not cls.get("container")
    assert not takes_inputs or "Shapes: " in text


@pytest.mark.parametrize("op", DESCRIBED, ids=lambda op: op.name)
def test_declares_the_shape_of_its_result(op):
    assert bool(op.get("shape")) != bool(op.kernel), "shape is for operators without a kernel"


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/reference/README.md").read_text()
    for path in PAGES:
        assert path.stem == "README" or f"({path.name})" in index


def test_errors_are_those_of_the_functions_that_a_file_means(tmp_path):
    files = {
        "solve": """
namespace {
void check(const Tensor& t) { fail_arg(TT_SHAPE, "self", "self is {}", t.shape()); }
}  // namespace
Tensor impl::solve(const Tensor& self) {
  check(self);
  check_rank(self);
  check_real(self);
}
""",
        "search": """
static void check(const Tensor& t) { fail_arg(TT_DTYPE, "self", "search"); }
static void check_real(const Tensor& t) { fail_arg(TT_DTYPE, "self", "search"); }
""",
        "shape": """
void check_rank(const Tensor& t) { fail_arg(TT_SHAPE, "self", "a matrix is needed"); }
""",
    }
    (tmp_path / "src/ops").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / f"src/ops/{name}.cpp").write_text(text)
    expected = [("SHAPE", "self is …"), ("SHAPE", "a matrix is needed")]
    assert Messages({}, tmp_path).of("solve") == expected


def test_errors_after_a_block_of_the_function_are_listed(tmp_path):
    (tmp_path / "src/ops").mkdir(parents=True)
    (tmp_path / "src/ops/solve.cpp").write_text(
        """
Tensor impl::solve(const Tensor& self) {
  if (self.ndim) {
    check();
  }
  fail_arg(TT_SHAPE, "self", "self is {}", self.sizes());
}
"""
    )
    assert Messages({}, tmp_path).of("solve") == [("SHAPE", "self is …")]
