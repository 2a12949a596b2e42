"""The identity of a device library covers every plan struct and changes with each of them."""
import re

import pytest
from codegen.cxx import plans
from codegen.model.schema import DeclError
from conftest import ROOT

HEADER = """
// A comment with struct Hidden { int x; };
struct Pair {
  char* p;
  int64_t a, b;
};
struct FirstPlan {
  Stages run;
  const char *x, *y;  // pointers
  Pair pairs[2];
  alignas(16) char scalar[kMax][16];
  int64_t size[kMax], stride[kMax];
  static constexpr int kUnits = 4;
  TT_INLINE int64_t units() const { return size[0] * size[1]; }
  double* parts = nullptr;
};
struct NotHandedOver {
  int64_t local;
};
"""
FIELDS = ["run", "x", "y", "pairs", "scalar", "size", "stride", "parts"]


def rows(text):
    return plans.rows({"src/plan/x_plan.h": text}).splitlines()


def test_every_field_has_a_row():
    assert rows(HEADER)[3:] == [
        "TT_PLAN(Pair)",
        *(f"TT_PLAN_FIELD(Pair, {f})" for f in ("p", "a", "b")),
        "TT_PLAN(FirstPlan)",
        *(f"TT_PLAN_FIELD(FirstPlan, {f})" for f in FIELDS),
    ]


@pytest.mark.parametrize(
    "old, new",
    [
        ("  Pair pairs[2];\n", ""),
        ("int64_t a, b;", "int64_t b, a;"),
        ("double* parts", "double* sums"),
        ("struct NotHandedOver", "struct SecondPlan"),
    ],
)
def test_a_change_of_a_plan_changes_the_rows(old, new):
    assert old in HEADER
    assert rows(HEADER.replace(old, new)) != rows(HEADER)


@pytest.mark.parametrize(
    "member",
    [
        "void (*call)(int64_t begin);",
        "struct { int64_t a; } inner;",
        "union { int64_t i; double f; };",
    ],
)
def test_what_is_no_plain_field_is_refused(member):
    with pytest.raises(DeclError, match="FirstPlan"):
        rows(HEADER.replace("Stages run;", member))


def test_no_plan_of_the_library_is_left_out():
    listed = (ROOT / "src/plan/gen/backend_plans.inc").read_text()
    for path in sorted((ROOT / "src/plan").glob("*_plan.h")):
        declared = re.findall(r"^struct (\w+Plan) \{", path.read_text(), re.M)
        assert declared, path.name
        for name in declared:
            assert f"TT_PLAN({name})\n" in listed
