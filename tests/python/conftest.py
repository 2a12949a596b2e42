"""The binding under test is the source tree's; each test draws the same random numbers in every
run."""
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python"))


@pytest.fixture(autouse=True)
def seeded():
    import tt

    tt.manual_seed(0)
