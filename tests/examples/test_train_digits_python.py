"""The Python example learns, loads its checkpoint, draws its figure if matplotlib is installed, and
explains errors."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*args, **options):
    return subprocess.run(
        [sys.executable, ROOT / "examples/python/train_digits.py", *map(str, args)],
        text=True,
        capture_output=True,
        **options,
    )


def accuracy(done):
    assert done.returncode == 0, done.stderr
    return float(re.search(r"test accuracy (\S+) %", done.stdout).group(1))


def test_learns_and_is_evaluated_bit_equal(tmp_path):
    done = run(
        "--seed",
        1,
        "--checkpoint",
        "run",
        "--logits",
        "trained",
        "--figure",
        "digits.png",
        cwd=tmp_path,
    )
    assert accuracy(done) >= 97.5 and "epoch  30/30 [##############################]" in done.stdout
    try:
        import matplotlib  # noqa: F401

        assert (tmp_path / "digits.png").read_bytes()[:4] == b"\x89PNG"
    except ImportError:
        assert "no digits.png: the figure needs matplotlib" in done.stdout
    assert accuracy(run("--evaluate", "run", "--logits", "evaluated", cwd=tmp_path)) == accuracy(
        done
    )
    trained = (tmp_path / "trained").read_bytes()
    assert len(trained) == 297 * 10 * 4 and (tmp_path / "evaluated").read_bytes() == trained


@pytest.mark.parametrize(
    "args, text",
    [
        (["--data", "/nowhere"], "No such file"),
        (["--evaluate", "/etc/passwd"], "safetensors_open"),
        (["--data", os.devnull], "0 rows, more than 1500 are needed"),
    ],
)
def test_wrong_input_is_named(args, text, tmp_path):
    done = run(*args, cwd=tmp_path)
    assert done.returncode == 1 and text in done.stderr and "Traceback" not in done.stderr
