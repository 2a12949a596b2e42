#!/usr/bin/env python3
"""Checks what nvcc says of the kernels: stack frames and spills against stack.txt, and the size of
libtt_cuda.so. ./dev cuda runs it after a build.

    resources.py BUILD [--all] [--write]

--all: every family was built, so that entries of stack.txt without a kernel are stale and the size
counts. --write: writes stack.txt."""
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIST = HERE / "stack.txt"
MOST_BYTES = 16_000_000  # of the library for sm_80, sm_90a and PTX

ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
# ptxas had to add fences or waits to products of a warpgroup, or runs them one by one.
ADDED = re.compile(r"\((C75\d\d)\) (.*)")
HEAD = """\
# The files that were measured, and their kernels with a stack frame or spilled registers: bytes of
# the frame, bytes of spill stores; the most of all instantiations and targets. Written by
# resources.py --write.
"""


def base_name(symbol):
    """The name of a kernel without namespaces, template arguments and parameters."""
    text, depth = "", 0
    for c in symbol:
        depth -= c == ">"
        if depth == 0 and c not in "<>":
            text += c
        depth += c == "<"
    return text.replace("(anonymous namespace)", "").split("(")[0].split(" ")[-1].split("::")[-1]


def demangled(symbols):
    out = subprocess.run(
        ["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True
    )
    return out.stdout.splitlines()


def frames(log):
    """(symbol, frame, spills) for each kernel of a log of nvcc --resource-usage."""
    symbol = None
    for line in log.splitlines():
        if entry := ENTRY.search(line):
            symbol = entry[1]
        elif symbol and (frame := FRAME.search(line)):
            yield symbol, int(frame[1]), int(frame[2])
            symbol = None


def measured(build):
    """{(file, kernel): (frame, spills)} of the kernels that have any, and the files built."""
    found, files = {}, set()
    for path in sorted((build / "kernels/cuda").glob("*.cu.o.txt")):
        file = path.name[: -len(".cu.o.txt")].replace("_", "/", 1)
        files.add(file)
        rows = list(frames(path.read_text()))
        for name, (_, frame, spills) in zip(demangled([r[0] for r in rows]), rows):
            if frame or spills:
                key = (file, base_name(name))
                old = found.get(key, (0, 0))
                found[key] = (max(old[0], frame), max(old[1], spills))
    return found, files


def added(build):
    """What ptxas added to products of a warpgroup: files and its words."""
    for path in sorted((build / "kernels/cuda").glob("*.cu.o.txt")):
        for line in path.read_text().splitlines():
            if words := ADDED.search(line):
                yield f"{path.name[: -len('.cu.o.txt')]}: {words[2]} ({words[1]})"


def listed():
    """The entries of stack.txt, and the files that it covers."""
    rows = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
    entries = {(r[0], r[1]): (int(r[2]), int(r[3])) for r in rows if len(r) > 1}
    return entries, {r[0] for r in rows}


def write(found, files):
    lines = list(files) + [f"{f} {k} {a} {b}" for (f, k), (a, b) in found.items()]
    LIST.write_text(HEAD + "".join(f"{line}\n" for line in sorted(lines)))


def main(build, flags):
    found, files = measured(build)
    if not files:
        sys.exit(f"no logs of nvcc in {build}/kernels/cuda")
    if "--write" in flags:
        write(found, files)
    known, covered = listed()
    wrong = list(added(build))
    for key, (frame, spills) in sorted(found.items()):
        most = known.get(key, (0, 0))
        if key[0] in covered and (frame > most[0] or spills > most[1]):
            text = f"{key[0]}: {key[1]} has {frame} bytes of stack, {spills} of spills"
            wrong.append(f"{text}; stack.txt allows {most[0]} and {most[1]}")
    for file in sorted(files - covered):
        print(f"{file} is not in stack.txt: resources.py --write")
    if "--all" in flags:
        stale = sorted(set(known) - set(found))
        wrong += [f"{f}: {k} needs no entry in stack.txt" for f, k in stale]
        size = (build / "cuda/libtt_cuda.so").stat().st_size
        if size > MOST_BYTES:
            wrong.append(f"libtt_cuda.so has {size} bytes: at most {MOST_BYTES}")
    print(f"{len(files)} files of kernels, {len(found)} kernels with a stack frame")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
