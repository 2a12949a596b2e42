"""One family name per operator through every layer: the file that declares an operator gives its
name to the files that implement it, plan it, differentiate it and compute it."""
import re
import tomllib

import pytest
from common import ROOT

DECLARED = {
    path.stem: {
        name: {**table.get("defaults", {}), **keys}
        for name, keys in table.items()
        if name != "defaults"
    }
    for path in sorted((ROOT / "src/ops/decl").glob("*.toml"))
    if path.stem != "enums"
    for table in [tomllib.loads(path.read_text())]
}
OPERATORS = {name: family for family, table in DECLARED.items() for name in table}
# Operators of a family share kernels with optimizers, and all elementwise operators have one plan.
GROUPS = {*DECLARED, "optim", "elementwise"}
FUNCTION = re.compile(r"^(?!static\b)[A-Za-z]\w*(?:<\w+>)? (\w+)\(", re.M)


def family(path):
    """The folder of a file below its layer, or the first word of its name."""
    return path.parent.name if path.parent.name in DECLARED else re.split(r"[_.]", path.name)[0]


def operator(function):
    """The operator that a function of namespace impl implements, None if it is a helper of one."""
    for name in (function, function.removesuffix("_scalar"), function.removesuffix("_")):
        if name in OPERATORS:
            return name
    return None


def definitions(path):
    """The functions that a file defines for others."""
    return FUNCTION.findall(path.read_text())


def test_implementations():
    wrong = [
        f"{path.name}: {name} is of the family {OPERATORS[operator(name)]}"
        for path in sorted((ROOT / "src/ops").rglob("*.cpp"))
        if path.parent.name != "gen"
        for name in definitions(path)
        if operator(name) and OPERATORS[operator(name)] != family(path)
    ]
    assert not wrong, "\n".join(wrong)


def test_formulas():
    users = {}
    for table in DECLARED.values():
        for name, keys in table.items():
            text = f"{keys.get('grad', '')} {keys.get('composite', '')}"
            for called in re.findall(r"\b(\w+)\(", text):
                users.setdefault(called, set()).add(OPERATORS[name])
    declared = set(
        re.findall(r"\b(\w+)\(", (ROOT / "src/autograd/formulas/formulas.h").read_text())
    )
    wrong = []
    for path in sorted((ROOT / "src/autograd/formulas").glob("*.cpp")):
        own = "" if path.stem == "formulas" else path.stem
        assert not own or own in DECLARED, f"{path.name}: {own} is no family"
        for name in set(definitions(path)) & declared:
            by = users.get(name, set())
            if len(by) == 1 and by != {own} or own and by - {own}:
                wrong.append(f"{path.name}: {name} is used by {', '.join(sorted(by))}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["plan", "build"])
def test_plans(kind):
    names = {p.name.removesuffix(f"_{kind}.h") for p in (ROOT / "src/plan").glob(f"*_{kind}.h")}
    assert names <= GROUPS, sorted(names - GROUPS)


def test_functors():
    wrong = []
    for entries in sorted((ROOT / "kernels/functors/gen").glob("*.inc")):
        files = [p for p in (ROOT / "kernels/functors").glob("*.h") if family(p) == entries.stem]
        text = "".join(path.read_text() for path in files)
        for functor in re.findall(r"^TT_ELEMENTWISE\(\w+, (\w+),", entries.read_text(), re.M):
            if not re.search(rf"^(struct |TT_\w+\(){functor}\b", text, re.M):
                wrong.append(f"{functor} is not in kernels/functors/{entries.stem}.h")
    assert not wrong, "\n".join(wrong)


def kernels():
    """[name, kind, family, plan] of kernels/kernels.txt."""
    for line in (ROOT / "kernels/kernels.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line.split()[:4]


def test_kernels():
    entries = {}
    for path in (ROOT / "kernels/cpu").rglob("*.cpp"):
        for name in re.findall(r"\bTT_KERNEL\((\w+)\)", path.read_text()):
            entries[name] = path.parent.name
    plans = set(
        re.findall(r"TT_PLAN\((\w+)\)", (ROOT / "src/plan/gen/backend_plans.inc").read_text())
    )
    for name, kind, of, plan in kernels():
        assert plan in plans, f"kernels.txt: {name} has the plan {plan}, which nothing defines"
        assert of in GROUPS, f"kernels.txt: {name} has the family {of}, which nothing declares"
        if kind == "staged":
            assert entries.pop(name) == of, f"kernels.txt: {name} is not in kernels/cpu/{of}"
    driven = {
        of for _, kind, of, _ in kernels() if kind == "driver"
    }  # these have entries of their own
    assert set(entries.values()) <= driven, f"not in kernels.txt: {sorted(entries)}"
