"""engine: a turret learns on the engine's threads and in its heap, while frames go on."""
import os
import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(os.environ["TT_BUILD"]) / "examples/engine"


def run(*args):
    done = subprocess.run([str(PROGRAM), *map(str, args)], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "allocations in frames 0, blocks left in the heap 0\n" in done.stdout
    before, after = re.search(r"threads before and after (\d+) and (\d+)", done.stdout).groups()
    assert before == after
    return done.stdout


def test_keeps_memory_and_threads_to_itself():
    run(3)


@pytest.mark.long
def test_learns_to_hit():
    text = run(60)
    assert float(re.search(r"frames, miss (\S+)", text).group(1)) < 0.1
    assert int(re.search(r"loops on workers (\d+)", text).group(1)) > 0


def test_wrong_options_are_explained():
    done = subprocess.run([PROGRAM, "none"], text=True, capture_output=True)
    assert done.returncode == 2 and "usage" in done.stderr
