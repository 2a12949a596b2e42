"""The C++ example trains as the C one does, and reports a failure as an exception's text."""
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ["TT_BUILD"]) / "examples/train_digits_cpp"


def test_learns():
    done = subprocess.run(
        [PROGRAM, ROOT / "examples/data/digits.csv", "8"], text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"test accuracy (\S+) %", done.stdout).group(1)) >= 95


def test_missing_file():
    done = subprocess.run([PROGRAM, "/nowhere"], text=True, capture_output=True)
    assert done.returncode == 1 and "No such file" in done.stderr
