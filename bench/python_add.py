#!/usr/bin/env python3
"""What a tiny operator costs from Python, beside PyTorch in the same process, and how long the
package takes to load.

usage: python_add.py [ROUNDS]      (with an interpreter that has PyTorch; without it, tt's times
alone) Rounds of tt and PyTorch alternate; a time is the median of its rounds, each of 20,000 calls,
in processor time of the process: that of others does not count. Prints a table in Markdown.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

import numpy

BINDING = Path(__file__).resolve().parents[1] / "bindings/python"
sys.path.insert(0, str(BINDING))
LIBRARY = os.environ.get("TT_LIBRARY") or str(BINDING.parents[1] / "build/libtt.so")
CALLS = 20_000
FIRST_OP = "import time; t = time.perf_counter(); import tt; tt.ones(4, 4) + tt.ones(4, 4); print(time.perf_counter() - t)"


def rows(m):
    """name -> function to time, of a module that is tt or torch."""
    a, b, eye = m.ones(4, 4), m.ones(4, 4), m.ones(8, 8)
    leaf = m.ones(4, 4, requires_grad=True)
    line, cpu = m.ones(10), m.device("cpu")
    relu, linear = m.nn.ReLU(), m.nn.Linear(4, 4)
    array = numpy.ones((4, 4), dtype=numpy.float32)

    def assign():
        line[6:] = -1

    return {
        "a + b, 4x4": lambda: a + b,
        "a + 1.5, 4x4": lambda: a + 1.5,
        "a.add_(b), 4x4": lambda: a.add_(b),
        "a @ b, 8x8": lambda: eye @ eye,
        "a.sum(), 4x4": lambda: a.sum(),
        "a[1], 4x4": lambda: a[1],
        "a.exp(), 4x4": lambda: a.exp(),
        "a * w, recorded, 4x4": lambda: a * leaf,
        "nn.ReLU()(a), 4x4": lambda: relu(a),
        "nn.Linear(4, 4)(a), 4x4": lambda: linear(a),
        "from_numpy(array), 4x4": lambda: m.from_numpy(array),
        "a.numpy(), 4x4": lambda: a.numpy(),
        "tensor([1, 2, 3, 4, 5])": lambda: m.tensor([1, 2, 3, 4, 5]),
        "x.tolist(), 10": lambda: line.tolist(),
        "a.tolist(), 4x4": lambda: a.tolist(),
        "x[1:6], 10": lambda: line[1:6],
        "x[6:] = -1, 10": assign,
        "a.to(device)": lambda: a.to(cpu),
        "a.shape[0]": lambda: a.shape[0],
    }


def measure(functions, rounds):
    """side -> name -> times of one call in ns"""
    times = {side: {name: [] for name in table} for side, table in functions.items()}
    for _ in range(rounds):
        for name in functions["tt"]:
            for side, table in functions.items():
                spent = timeit.timeit(table[name], timer=time.process_time, number=CALLS)
                times[side][name].append(spent / CALLS * 1e9)
    return times


def load_times(compiled):
    """Times of fresh interpreters, in ms: import and first operator, with and without cached
    bytecode."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            BINDING / "tt", Path(folder) / "tt", ignore=shutil.ignore_patterns("__pycache__")
        )
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env.update(PYTHONPATH=folder, TT_LIBRARY=LIBRARY)
        if not compiled:
            env["PYTHONDONTWRITEBYTECODE"] = "1"
        found = [
            float(
                subprocess.run(
                    [sys.executable, "-c", FIRST_OP],
                    env=env,
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            for _ in range(8)
        ]
    return statistics.median(found[1:]) * 1e3


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    import tt

    functions = {"tt": rows(tt)}
    try:
        import torch

        torch.set_num_threads(1)
        functions["torch"] = rows(torch)
    except ImportError:
        torch = None
    times = measure(functions, rounds)
    print(
        f"Python {sys.version.split()[0]}, PyTorch {torch.__version__ if torch else 'not installed'}, {rounds} rounds of {CALLS} calls\n"
    )
    print("| call | tt, ns | PyTorch, ns | tt by PyTorch |\n|---|---|---|---|")
    for name in functions["tt"]:
        mine = statistics.median(times["tt"][name])
        theirs = statistics.median(times["torch"][name]) if torch else 0
        ratio = (
            statistics.median(x / y for x, y in zip(times["tt"][name], times["torch"][name]))
            if torch
            else 0
        )
        print(
            f"| `{name}` | {mine:.0f} | {theirs:.0f} | {ratio:.2f} |"
            if torch
            else f"| `{name}` | {mine:.0f} | | |"
        )
    print(
        f"\n`import tt` and the first operator: {load_times(True):.0f} ms; without compiled bytecode {load_times(False):.0f} ms."
    )


if __name__ == "__main__":
    main()
