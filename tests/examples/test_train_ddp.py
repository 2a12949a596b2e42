"""train_ddp learns in two processes over each backend that this build has, as it does in one."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TT_BUILD"])
LAUNCHER = [sys.executable, "-m", "tt.distributed.run", "--no-python", "--nproc-per-node=2"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]


@pytest.mark.parametrize("backend", ["alone", "gloo", "mpi"])
def test_learns(backend, tmp_path):
    if backend != "alone" and not (BUILD / f"libtt_{backend}.so").exists():
        pytest.skip(f"no libtt_{backend} in this build")
    if backend != "alone" and os.environ.get("TT_SANITIZED") == "1":
        pytest.skip("the launcher is Python, and a sanitizer's dlopen looks on its own run path")
    command = {"alone": [], "gloo": LAUNCHER, "mpi": MPIRUN}[backend]
    paths = f"{ROOT / 'bindings/python'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    program, file = BUILD / "examples/train_ddp", tmp_path / "run.safetensors"

    def run(*args):
        environment = {**os.environ, "PYTHONPATH": paths}
        environment["TT_LIBRARY"] = str(BUILD / "libtt.so")
        done = subprocess.run(
            [*command, program, *args], capture_output=True, text=True, env=environment, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        return float(re.search(rf"\({backend}\): test accuracy (\S+) %", done.stdout).group(1))

    run("--epochs", "8", "--checkpoint", file)
    assert run("--epochs", "2", "--resume", file) > 80  # two epochs alone: 58
