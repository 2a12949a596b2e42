"""Checks the syntax of the library's sources and kernels under -std=c++20 -pedantic, with every
warning an error: pedantic.py BUILD COMPILER…. BUILD is configured; its flags are used, but those
that only gcc knows. A COMPILER is a command such as g++, clang++ or, for the clang in zig's
folder Z, "zig clang --driver-mode=g++ -resource-dir Z/lib"."""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GCC_ONLY = ("-mmemset-strategy", "-mmemcpy-strategy", "-fno-semantic", "-fvect-cost-model")
CHECK = "-std=c++20 -pedantic -fsyntax-only -Wall -Wextra -Werror".split()


def flags_of(entry):
    """The arguments after the compiler, without the output and the standard."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if word.startswith("-")) :]
    skip = {i for i, word in enumerate(words) if word == "-o"}
    skip |= {i + 1 for i in skip}
    left = [word for i, word in enumerate(words) if i not in skip]
    return [word for word in left if word != "-c" and not word.startswith("-std=")]


def check(compiler, entry):
    flags = flags_of(entry)
    if not compiler.startswith("g++"):
        flags = [f for f in flags if not f.startswith(GCC_ONLY)] + ["-Wno-pass-failed"]
    command = [*shlex.split(compiler), *flags, *CHECK]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def sources(build):
    """Compilations of the library, each kernel for the last instruction set alone."""
    by_file = {}
    for entry in json.loads((Path(build) / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.suffix == ".cpp" and path.relative_to(ROOT).parts[0] in ("src", "kernels"):
            by_file[path] = entry
    return list(by_file.values())


def main(build, *compilers):
    entries = sources(build)
    failed = False
    for compiler in compilers:
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("TT_JOBS", 2))) as pool:
            texts = [t for t in pool.map(lambda e: check(compiler, e), entries) if t]
        print(f"{compiler}: {len(entries)} sources, {len(texts)} with a warning or an error")
        print(*texts[:3], sep="\n", end="")
        failed |= bool(texts)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
