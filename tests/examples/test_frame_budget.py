"""frame_budget: decisions spread over frames, in the engine's memory, equal the network's."""
import os
import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(os.environ["TT_BUILD"]) / "examples/frame_budget"


def run(*args):
    return subprocess.run([str(PROGRAM), *map(str, args)], text=True, capture_output=True)


@pytest.mark.parametrize("budget, least", [(0, 5), (100000, 1)])
def test_decides_within_budgets(budget, least):
    done = run("--frames", 120, "--budget", budget)
    assert done.returncode == 0, done.stdout + done.stderr
    decisions, frames = re.search(r"(\d+) decisions, (\S+) frames each", done.stdout).groups()
    assert float(frames) >= least and (int(decisions) == 120 or budget == 0)
    assert int(decisions) >= 1
    assert "allocations in the loop: 0\n" in done.stdout
    assert "differ from the network's: 0\n" in done.stdout


def test_wrong_options_are_explained():
    for args in (("--frames",), ("--budget", "x"), ("--what", "1")):
        done = run(*args)
        assert done.returncode == 2 and "usage" in done.stderr
