#!/usr/bin/env python3
"""Sizes and start time of the build in build/: size.py [--brief] [-n OPERATORS]. Without --brief
also the bytes of each operator."""
import argparse
import collections
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
# what pkg-config --static says
# Code and constants share pages: separate ones cost a small program 8 kB of padding.
STATIC = [
    "-Wl,--gc-sections,-z,pack-relative-relocs,-z,noseparate-code",
    str(BUILD / "libtt.a"),
    "-Wl,-Bstatic",
    "-lstdc++",
    "-Wl,-Bdynamic",
    "-static-libgcc",
    "-lm",
    "-s",
]


def run(*command):
    return subprocess.run(
        [str(c) for c in command], check=True, capture_output=True, text=True
    ).stdout


def stripped(path, folder):
    run("strip", "-o", folder / "stripped", path)
    return (folder / "stripped").stat().st_size


def linked(folder, *sources):
    """Size of a static program (dynamic libc)."""
    run("cc", "-O2", "-w", f"-I{ROOT / 'include'}", *sources, *STATIC, "-o", folder / "program")
    return (folder / "program").stat().st_size


def sizes(folder):
    example = ROOT / "examples/c"
    yield "stripped libtt.so", stripped(BUILD / "libtt.so", folder), 9_000_000
    yield "static program that adds two tensors, stripped", linked(
        folder, ROOT / "tests/structure/add.c"
    ), 300_000
    yield "static train_digits, stripped", linked(
        folder, *(example / f for f in ("train_digits.c", "digits_data.c", "report.c"))
    ), 2_600_000


def start_ms(rounds=20):
    program, library = BUILD / "bench/start_time", BUILD / "libtt.so"
    run(program, library)  # warms the page cache
    return statistics.median(float(run(program, library)) for _ in range(rounds)) / 1e6


def operators():
    """Bytes of the symbols that carry an operator's name, by operator: {name: (generated and
    hand-written code, kernels)}."""
    names = {
        line.split()[1][3:]
        for line in (ROOT / "src/ops/abi.lock").read_text().splitlines()
        if line.startswith("bit")
    }
    names |= set(re.findall(r"&op_(\w+?)\.info", (ROOT / "src/ops/gen/all_ops.cpp").read_text()))
    names = {n.rstrip("_").removesuffix("_into").rstrip("_") for n in names}
    bytes_of = collections.defaultdict(lambda: [0, 0])
    for line in run("nm", "-SC", "--defined-only", BUILD / "libtt.so").splitlines():
        fields = line.split(maxsplit=3)
        if len(fields) < 4 or not re.fullmatch(r"[0-9a-f]{16}", fields[1]):
            continue
        kernel = re.match(
            r"tt::(baseline|avx2|avx512)::(?:\(anonymous namespace\)::)?(\w+)", fields[3]
        )
        words = (
            [kernel.group(2)]
            if kernel
            else re.findall(r"\b(?:op_|tt_|op::|impl::|autograd::)(\w+)", fields[3])[:1]
        )
        for word in words:
            word = re.sub(r"_(f64|i64|scalar|ex|into)(?=_|$)", "", word).rstrip("_")
            if word in names:
                bytes_of[word][1 if kernel else 0] += int(fields[1], 16)
    return bytes_of


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brief", action="store_true")
    args = parser.parse_args()
    print("| figure | value | limit |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for title, size, limit in sizes(Path(folder)):
            print(f"| {title} | {size / 1000:.0f} kB | {limit / 1000:.0f} kB |")
    print(f"| load and first operator, median of 20 | {start_ms():.2f} ms | 5 ms |")
    if args.brief:
        return
    print("\n| operator | functions, bytes | kernels of all ISAs, bytes |\n|---|---|---|")
    for name, (code, kernels) in sorted(operators().items(), key=lambda item: -sum(item[1])):
        print(f"| {name} | {code} | {kernels} |")


if __name__ == "__main__":
    main()
