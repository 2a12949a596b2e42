"""embed_host: survives running out of memory in a training step, and frees every byte."""
import os
import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(os.environ["TT_BUILD"]) / "examples/embed_host"


def run(*args):
    return subprocess.run([str(PROGRAM), *map(str, args)], text=True, capture_output=True)


@pytest.mark.parametrize("limit, threads", [(12, 2), (8, 1)])
def test_survives_out_of_memory(limit, threads):
    done = run("--limit", limit, "--threads", threads, "--steps", 55)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OOM: " in done.stdout and int(re.search(r"survived (\d+)", done.stdout).group(1)) >= 1
    peak, allowed = map(
        float,
        re.search(
            r"peak (\S+) MB of (\d+) allowed, 0 bytes in 0 blocks left", done.stdout
        ).groups(),
    )
    assert peak <= allowed == limit
    loops = int(re.search(r"host's threads: (\d+)", done.stdout).group(1))
    assert loops > 100 or threads == 1


def test_wrong_options_are_explained():
    for args in (("--limit", "x"), ("--steps",), ("--what", "1"), ("--steps", "0")):
        done = run(*args)
        assert done.returncode == 2 and "usage" in done.stderr
