"""The public conformance cases of the declared operators, all of them, by the public runner (conformance/run.py)."""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = HERE / "conformance"
ROOT = HERE.parents[1]


def listed():
    """Names of the case files that count: conformance/ops.txt."""
    return (SUITE / "ops.txt").read_text().split()


def test_every_listed_file_is_there():
    assert sorted(listed()) == sorted(p.name[:-len(".safetensors")] for p in (SUITE / "cases/ops").iterdir())


def test_all_cases_pass(tmp_path):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "bindings/python"), os.environ.get("PYTHONPATH", "")]))
    report = tmp_path / "report.json"
    run = subprocess.run([sys.executable, str(SUITE / "run.py"), "--json", str(report), "--list-failures", "100"],
                         env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 failed" in run.stdout
    files = {row["id"].split("/")[0] for row in json.loads(report.read_text())}
    assert files == set(listed())
