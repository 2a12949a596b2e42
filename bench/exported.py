"""What tt exports as C99: bytes and speed on x86-64 beside tt's plan and onnxruntime, and bytes and
instructions on aarch64.

    ./dev firmware    # writes the sources to build/firmware
    TT_LIBRARY=build/libtt.so taskset -c 1 python bench/exported.py build/firmware

Needs torch, onnx and onnxruntime (inference.py), gcc, clang, aarch64-linux-gnu-gcc and qemu's user
emulation. Instructions are those that qemu executes for one image; times are medians of rounds in
turn, in microseconds of the processor.
"""
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

import inference

PIXELS, CLASSES = 64, 10
ARM = "aarch64-linux-gnu-gcc -static"
COMPILERS = ["gcc -Os", "gcc -O2", "gcc -O3", "clang -O2", f"{ARM} -Os", f"{ARM} -O2"]
NAMES = ["digits", "digits_f32", "mlp", "mlp_f32"]
LOOP = f"""
#include "NAME.h"
#include <stdlib.h>
void loop(int n, const float* x, float* y) {{
  for (int i = 0; i < n; i++) NAME(x, y);
}}
int main(int n_args, char** args) {{
  static float x[{PIXELS}], y[{CLASSES}];
  loop(n_args > 1 ? atoi(args[1]) : 1, x, y);
  return 0;
}}
"""


def run(command, **options):
    command = [str(word) for word in command]
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def bytes_of(path):
    """Of code and constants of an object file."""
    found = re.findall(r"\.(?:text|rodata)\S*\s+(\d+)", run(["size", "-A", path]))
    return sum(map(int, found))


def instructions(program):
    """Executed for one call: the difference between two runs."""
    counts = []
    for calls in (1, 2):
        command = ["qemu-aarch64-static", "-singlestep", "-d", "exec,nochain", program, calls]
        done = subprocess.run(list(map(str, command)), check=True, stderr=subprocess.PIPE)
        counts.append(done.stderr.count(b"\nTrace "))
    return counts[1] - counts[0]


def build(folder, source, name, compiler):
    """Returns the object file of an exported source, and a library or program with a loop."""
    words = [*compiler.split(), "-std=c99", "-I", source]
    made, main = folder / "exported.o", folder / "main.c"
    main.write_text(LOOP.replace("NAME", name))
    run([*words, "-fPIC", "-c", source / f"{name}.c", "-o", made])
    out = folder / f"{name}-{compiler.replace(' ', '')}"
    shared = [] if ARM in compiler else ["-shared", "-fPIC"]
    run([*words, *shared, main, made, "-o", out, "-lm"])
    return made, out


def main(source):
    rows, times = {}, {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        image, scores = (ctypes.c_float * PIXELS)(), (ctypes.c_float * CLASSES)()
        peers = inference.prepare("digits")[-1]
        for name in NAMES:
            loops = {}
            for compiler in COMPILERS:
                made, out = build(folder, source, name, compiler)
                rows[name, compiler] = [bytes_of(made)]
                if ARM in compiler:
                    rows[name, compiler].append(instructions(out))
                else:
                    loops[compiler] = ctypes.CDLL(str(out)).loop
            calls = 1000 if "mlp" in name else 100
            fns = [lambda loop=loop: loop(calls, image, scores) for loop in loops.values()]
            beside = [] if "mlp" in name else peers
            measured = inference.compare([*fns, *beside])
            for compiler, t in zip(loops, measured):
                rows[name, compiler].append(t / calls)
            times[name] = measured[len(fns) :]
    print("| | " + " | ".join(c.replace(" -static", "") for c in COMPILERS) + " |")
    print("|---" * (len(COMPILERS) + 1) + "|")
    for name in NAMES:
        print(f"| {name}: bytes | " + " | ".join(f"{rows[name, c][0]:,}" for c in COMPILERS) + " |")
        cells = [
            f"{rows[name, c][1]:,} instructions" if ARM in c else f"{rows[name, c][1]:.2f} µs"
            for c in COMPILERS
        ]
        print(f"| {name}: one image | " + " | ".join(cells) + " |")
    for name in ("digits", "digits_f32"):
        plan, session = times[name]
        print(f"beside {name}: tt's plan {plan:.1f} µs, onnxruntime {session:.1f} µs")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
