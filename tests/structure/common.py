"""What the structure tests share: where things are, how to run a tool."""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TT_BUILD", ROOT / "build"))
SHARED = BUILD / "libtt.so"
STATIC = BUILD / "libtt.a"


def run(*command, **options):
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        [str(c) for c in command],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **options,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def cached(name):
    """A variable of the build, "" if unset."""
    found = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return found.group(1) if found else ""


def sources(*folders, suffixes=(".h", ".cpp", ".c", ".inc", ".cu", ".cuh")):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path


def per_file(paths):
    """One test per path, named by it."""
    return pytest.mark.parametrize(
        "path", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in paths]
    )


def left_out_in_turn(case, cases):
    """Whether `case` does not run with this commit. `./dev test` has time for one of `cases`, and
    takes them in turn; `./dev test all` runs each."""
    return int(os.environ.get("TT_TEST_TURN", case)) % cases != case


def exports():
    return (ROOT / "src/capi/gen/exports.txt").read_text().split()
