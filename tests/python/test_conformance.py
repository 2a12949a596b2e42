"""The public conformance cases of the declared operators, all of them, by the public runner
(conformance/run.py)."""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = HERE / "conformance"
ROOT = HERE.parents[1]
BACKWARDS = "PyTorch's gradient of self is that of what was replaced, not of the rest"
# Cases that fail, and what tt does instead.
DIFFERENT = {
    "as_strided_scatter/bf16/0": BACKWARDS,
    "as_strided_scatter/f32/0": BACKWARDS,
    "as_strided_scatter/f32/1": BACKWARDS,
    "matrix_exp/bf16/0": "the result is the exponential, rounded; PyTorch's is nan",
}


def listed():
    """Names of the case files that count: conformance/ops.txt."""
    return (SUITE / "ops.txt").read_text().split()


def test_every_listed_file_is_there():
    assert sorted(listed()) == sorted(
        p.name[: -len(".safetensors")] for p in (SUITE / "cases/ops").iterdir()
    )


def test_what_is_listed_as_missing_is_not_there():
    sys.path.insert(0, str(SUITE))
    from cut import there
    from ttcase import Subject

    subject = Subject()
    assert [
        c for c in (SUITE / "missing.txt").read_text().split() if there(subject, c)
    ] == []  # else: run cut.py


def number_of_cases(path):
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return len(json.loads(header["__metadata__"]["cases"]))


def test_all_cases_pass_but_those_that_differ(tmp_path):
    env = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(
            [str(ROOT / "bindings/python"), os.environ.get("PYTHONPATH", "")]
        ),
    )
    run = subprocess.run(
        [sys.executable, SUITE / "run.py", "--list-failures", "100", "--json", tmp_path / "all"],
        env=env,
        capture_output=True,
        text=True,
    )
    total = sum(number_of_cases(p) for p in (SUITE / "cases/ops").iterdir())
    results = json.loads((tmp_path / "all").read_text())["cases"]
    assert len(results) == total > 500
    assert {case for case, failures in results.items() if failures} == set(DIFFERENT), run.stdout
