"""log_backend: trains on a device that the application registers; the log says which side computed
each operator."""
import os
import re
import subprocess
from pathlib import Path

PROGRAM = Path(os.environ["TT_BUILD"]) / "examples/log_backend"


def run(*args):
    return subprocess.run([str(PROGRAM), *map(str, args)], text=True, capture_output=True)


def table(text):
    return {
        m[1]: tuple(map(int, m.groups()[1:]))
        for m in re.finditer(r"^(\w+) +(\d+) +(\d+) +(\d+)$", text, re.M)
    }


def test_trains_and_tells():
    done = run("--steps", 200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(re.search(r"off by at most (\S+)", done.stdout)[1]) < 0.01
    losses = [float(m[1]) for m in re.finditer(r"loss (\S+)", done.stdout)]
    assert losses[-1] < 1e-3 < losses[0] and losses == sorted(losses, reverse=True)
    rows = table(done.stdout)
    for name in ("add", "sub", "mul", "matmul_stack"):
        calls, computed, fallback = rows[name]
        assert computed > 0 and calls == computed + fallback, name
    assert rows["mean"][1] == 0 and rows["mean"][2] == 200  # declined: tt ran it on the CPU
    assert re.search(r"matmul_stack +64x3 3x1 +-> computed", done.stdout)
    assert re.search(r"mean .*-> left to the CPU", done.stdout)
    assert re.search(r"peak [1-9]\d* bytes, 0 left", done.stdout)


def test_quiet_and_wrong_options():
    assert "->" not in run("--steps", 2, "--quiet").stdout
    for args in (("--steps",), ("--steps", "0"), ("--steps", "5x"), ("--what",)):
        done = run(*args)
        assert done.returncode == 2 and "usage" in done.stderr
