"""The op table keeps the samples and the references of a family in files of its name."""
import re
from pathlib import Path

import pytest
from codegen.model import schema
from codegen.tests import samples

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = [op for op in schema.load(ROOT / "src/ops/decl", ROOT).values() if not op.internal]
GROUPS = samples.load(ROOT)
REFERENCES = {
    name: path.stem
    for path in (ROOT / "tests/op_table/refs").glob("*.h")
    for name in re.findall(r'\{"(\w+)", \.\w+ = ', path.read_text())
}


def overloaded(name):
    """The operator whose reference an overload shares: add for add_scalar, max for max_dim."""
    while name not in REFERENCES and "_" in name:
        name = name.rpartition("_")[0]
    return name


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_reference_is_in_the_file_of_its_family(op):
    if "drawn" in GROUPS[op.get("samples")].keys:
        return  # random operators have no reference
    assert REFERENCES.get(overloaded(op.name)) == op.family


def test_every_family_has_its_files():
    families = {op.family for op in OPERATORS}
    assert set(REFERENCES.values()) <= families
    assert {group.family for group in GROUPS.values()} <= families
