"""The public training cases of what exists (conformance-training/<kind>), all of them, by the
public runner (conformance/run_training.py)."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CASES = HERE / "conformance-training"
ROOT = HERE.parents[1]


def number_of_cases(path):
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return len(json.loads(header["__metadata__"]["cases"]))


@pytest.mark.parametrize(
    "kind, least",
    [("optim", 49), ("sched", 20), ("modules", 288), ("init", 33), ("files", 39), ("curves", 2)],
)
def test_all_cases_pass(kind, least):
    env = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(
            [str(ROOT / "bindings/python"), os.environ.get("PYTHONPATH", "")]
        ),
    )
    command = [
        sys.executable,
        str(HERE / "conformance/run_training.py"),
        "--cases",
        str(CASES),
        "--kind",
        kind,
        "-v",
    ]
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    total = sum(number_of_cases(p) for p in (CASES / kind).glob("*.safetensors"))
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{total} passed, 0 failed" in run.stdout and total >= least
