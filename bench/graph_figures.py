"""Every figure that is asked of graphs beside what is asked and beside its peers, in a few minutes:

    cmake --build build --target graphs
    PYTHONPATH=bindings/python TT_LIBRARY=build/libtt.so taskset -c 1 \\
        python bench/graph_figures.py [PART…]

Parts: c (steps and chains from C, captures, arenas), python (steps and a chain beside PyTorch,
torch.compile and JAX), inference (beside onnxruntime and PyTorch; loading), integers (products of
bytes, packed weights), sizes (of exported C for Cortex-M7). Needs torch, jax, onnx and onnxruntime;
sizes need arm-none-eabi-gcc. The measuring is that of graphs.c, steps.py, inference.py, blocks.py
and exported.py: one thread, times of the processor, all that a row compares in turn in one process.
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import tiles  # before torch
import blocks
import exported
import inference
import steps
import torch

import tt
from tt._graph import captured

BUILD = pathlib.Path(os.environ["TT_LIBRARY"]).resolve().parent
MODELS = ["tiny", "lenet", "cnn", "gpt"]
CORTEX = "arm-none-eabi-gcc -std=c99 -Os -mthumb -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"
# Of a Zen 5 are the times of a tiny step; elsewhere its ratio to eager says more.
MICROSECONDS = {"tiny sgd": 1.2, "tiny adam": 2.0}
BY_EAGER = {"tiny sgd": 4.4 / 1.2, "tiny adam": 4.7 / 2.0, "lenet": 1.3, "cnn": 1.1, "gpt": 1.1}
missed = []


def most(value, limit):
    return value, f"≤ {limit:g}", value <= limit


def least(value, limit):
    return value, f"≥ {limit:.3g}", value >= limit


def row(figure, judged, tt_time="", peers=""):
    """judged: what `most` or `least` gave, or a value of which nothing is asked."""
    value, asked, holds = judged if isinstance(judged, tuple) else (judged, "", True)
    verdict = "met" if asked else ""
    if not holds:
        verdict = "**missed**"
        missed.append(figure)
    shown = f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
    print(f"| {figure} | {shown} | {asked} | {verdict} | {tt_time} | {peers} |", flush=True)


def beside(ours, names, times):
    """The speed of tt as a multiple of the others'."""
    return ", ".join(f"{name} {t / ours:.2f}" for name, t in zip(names, times))


# ---- parts ----


def measure_c():
    done = subprocess.run([BUILD / "bench/graphs", *MODELS], stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines()[2:]:
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        eager, compiled, plan, _, ratio = map(float, cells[:5])
        net, _, optimizer = name.partition(" ")
        times = f"{plan:,.2f} µs; compiled {compiled:,.2f}, eager {eager:,.2f}"
        if net == "chain":
            asked = least(ratio, 2.5) if name.endswith(str(10**6)) else ratio
            row(f"{name}: eager ÷ plan", asked, times)
            continue
        row(f"{name}: eager ÷ plan", least(ratio, BY_EAGER.get(name, BY_EAGER.get(net))), times)
        if name in MICROSECONDS:
            row(f"{name}: µs (asked of a Zen 5)", most(plan, MICROSECONDS[name]), times)
        capture, whole, arena, share = map(float, cells[5:])
        if net == "gpt":
            row(f"{name}: capture, ms", most(capture, 50), f"to a plan {whole:.1f} ms")
        if net == "lenet":
            row(f"{name}: arena ÷ eager's peak", most(share, 0.6), f"{arena:.2f} MB")
    done.check_returncode()


def measure_python():
    steps.ROUNDS, steps.ROUND_NS = 5, 100_000_000
    others = ["tt eager", "PyTorch", "torch.compile", "JAX jit"]
    for name in [*MODELS, steps.CHAIN]:
        us = steps.measured_chain() if name == steps.CHAIN else steps.measured(name)
        ours = us.pop(1)
        peers = beside(ours, others, us)
        if name == "tiny":
            row("tiny step from Python, µs (asked of a Zen 5)", most(ours, 3), "", peers)
        else:
            asked = least(us[0] / ours, 2.5) if name == steps.CHAIN else us[0] / ours
            row(f"{name} from Python: eager ÷ compiled", asked, f"{ours:,.1f} µs", peers)


def measure_inference():
    inference.ROUNDS = 9
    inference.TORCH_MODE = "default"
    others = ["onnxruntime", "torch.compile", "PyTorch"]
    for name in inference.MODELS:
        ours, *theirs = inference.measured(name)
        peers = beside(ours, others, theirs)
        figure = f"{name}, batch 1: onnxruntime ÷ tt"
        row(figure, least(theirs[0] / ours, 1.5), f"{ours:,.1f} µs", peers)
    ours, theirs = inference.loading("digits")
    peers = f"onnxruntime {theirs:.2f} ms"
    row("digits: loading a .ttg file, ms", most(ours, 5), f"{ours:.3f} ms", peers)


def measure_integers():
    for n in (256, 512, 1024):
        a, b = (tt.randint(-128, 128, (n, n), dtype=tt.int8) for _ in range(2))
        x, y = tt.randn(n, n), tt.randn(n, n)
        theirs = [torch.from_numpy(t.numpy()) for t in (a, b, x, y)]
        functions = [
            lambda: tt._int_mm(a, b.t()),
            lambda: x @ y,
            lambda: torch._int_mm(theirs[0], theirs[1].t()),
            lambda: theirs[2] @ theirs[3],
        ]
        ours, *times = inference.compare(functions)
        peers = beside(ours, ["float32 of tt", "PyTorch's int8", "its float32"], times)
        row(f"int8 {n}³: float32 ÷ int8", least(times[0] / ours, 2.5), f"{ours:,.1f} µs", peers)
    for n, kind, size, speed, reading in blocks.rows_of_one():
        figure = f"{kind} {n} × 4096, one row: of the reading speed"
        row(figure, speed / reading, f"{size / 1e6:.1f} MB at {speed / 1e9:.1f} GB/s")


def sizes_of(graph, name):
    """Bytes of code, of code and constants, and of memory of a graph's exported C."""
    with tempfile.TemporaryDirectory() as folder:
        graph.export_c(folder, name)
        source, made = pathlib.Path(folder, f"{name}.c"), pathlib.Path(folder, "made.o")
        exported.run([*CORTEX.split(), "-c", source, "-o", made])
        found = re.findall(r"\.(text|rodata|bss)\S*\s+(\d+)", exported.run(["size", "-A", made]))
    of = {kind: sum(int(n) for k, n in found if k == kind) for kind in ("text", "rodata", "bss")}
    return of["text"], of["text"] + of["rodata"], of["bss"]


def measure_sizes():
    n = tt.nn
    mlp = n.Sequential(n.Linear(64, 32), n.ReLU(), n.Linear(32, 10)).eval()
    graph, _ = captured(mlp, (tt.randn(1, 64),))
    code, whole, _ = sizes_of(inference.optimized(graph), "mlp")
    row("MLP 64-32-10 in C: bytes of code", most(code, 3000), f"with weights {whole:,}")
    digits = inference.MODELS["digits"][0](tt.nn, tt).eval()
    samples = [tt.rand(1, 1, 8, 8) for _ in range(8)]
    graph, _ = captured(digits, samples[:1])
    code, whole, memory = sizes_of(inference.optimized(graph).quantized(samples), "digits")
    row("digits, int8, in C: bytes of code and weights", most(whole, 12000), f"code {code:,}")
    row("digits, int8, in C: bytes of static memory", most(memory, 16000))


PARTS = {
    "c": measure_c,
    "python": measure_python,
    "inference": measure_inference,
    "integers": measure_integers,
    "sizes": measure_sizes,
}


def main():
    tt.set_num_threads(1)
    torch.set_num_threads(1)
    tt.manual_seed(0)
    print("| figure | value | asked | | tt | peers' time ÷ tt's |")
    print("|---" * 6 + "|")
    start = time.monotonic()
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
        print(f"{name}: after {time.monotonic() - start:.0f} s", file=sys.stderr)
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"\n{len(missed)} missed: {', '.join(missed) or 'none'}. Load {load}.")


if __name__ == "__main__":
    main()
