"""Checks the syntax of the library's sources and kernels under -std=c++20 -pedantic, with every
warning an error: pedantic.py BUILD [--only SOURCE,…] COMPILER…. BUILD is configured; its flags are
used, but those that only gcc knows. A COMPILER is a command such as g++, clang++ or, for the clang
in zig's folder Z, "zig clang --driver-mode=g++ -resource-dir Z/lib". clang also names the
extensions of GNU (-Wgnu).

"msvc COMPILER" compiles as if by Microsoft's compiler, with a clang: base/compiler/msvc.h instead
of gnu.h, Microsoft's keywords, none of GNU's, and GNU's other names are errors (msvc/first.h).

What passed is kept in BUILD/pedantic.json, by the contents of the source and of the headers that it
read, so that a run that was stopped goes on where it was, and the next run checks what changed."""
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GCC_ONLY = (
    "-mmemset-strategy",
    "-mmemcpy-strategy",
    "-fno-semantic",
    "-fvect-cost-model",
    "--param=",
    "-fno-reorder-blocks-and-partition",
    "-falign-jumps",
    "-falign-labels",
    "-Wno-maybe-uninitialized",
)
CHECK = "-std=c++20 -pedantic -fsyntax-only -Wall -Wextra -Werror".split()
# Compound literals of C99 are in the macros of clang 14's intrinsics; gcc would name those of tt.
CLANG = "-Wgnu -Wno-pass-failed -Wno-c99-extensions".split()
MSVC = (
    "-fms-extensions -fms-compatibility-version=19.40 -fdeclspec -fno-gnu-keywords"
    " -mxsave -include"
).split() + [str(ROOT / "tests/cross/msvc/first.h"), "-I" + str(ROOT / "tests/cross/msvc")]
MSVC_WARNINGS = (
    "-Wno-microsoft -Wno-language-extension-token -Wno-unknown-pragmas -Wno-ignored-attributes"
    " -Wno-misleading-indentation"
).split()
# What only other systems or the C++ runtime of GNU have.
NOT_FOR_MSVC = (
    "src/base/os_linux",
    "src/base/os_posix",
    "src/base/os_darwin",
    "src/base/os_bare",
    "src/base/os_file_posix",
    "src/base/cxx_",
    "src/dist/engines/",
)


def flags_of(entry):
    """The arguments after the compiler, without the output, the standard and what is
    precompiled."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if word.startswith("-")) :]
    skip = {i for i, word in enumerate(words) if word in ("-o", "-include")}
    skip |= {i + 1 for i in skip}
    skip |= {i for i, word in enumerate(words) if word == "-Winvalid-pch"}
    left = [word for i, word in enumerate(words) if i not in skip]
    return [word for word in left if word != "-c" and not word.startswith("-std=")]


def command_of(compiler, entry):
    flags = flags_of(entry)
    words = shlex.split(compiler)
    warnings = []
    if words[0] == "msvc":
        words = [*words[1:], *MSVC]
        warnings = MSVC_WARNINGS
        flags = [f for f in flags if not f.startswith("-DTT_OWN_TERMINATE")]  # of GNU's runtime
    if not words[0].startswith("g++"):
        flags = [f for f in flags if not f.startswith(GCC_ONLY)]
        warnings = [*CLANG, *warnings]
    return [*words, *flags, *CHECK, *warnings]


def digest_of(files):
    """Of the contents of files; nothing if one of them is gone."""
    state = hashlib.sha256()
    for name in files:
        if not os.path.exists(name):
            return None
        state.update(Path(name).read_bytes())
    return state.hexdigest()


def check(command, entry):
    """What the compiler says, and the files that it read, headers of the system left out."""
    with tempfile.TemporaryDirectory() as folder:
        read = Path(folder) / "read.d"
        done = subprocess.run(
            [*command, "-MMD", "-MF", str(read)],
            cwd=entry["directory"],
            capture_output=True,
            text=True,
        )
        text = read.read_text() if read.exists() else ""  # clang removes it after an error
    names = text.replace("\\\n", " ").partition(":")[2].split()
    files = [os.path.join(entry["directory"], name) for name in names]
    return (done.stderr or "failed\n" if done.returncode else ""), files


class Known:
    """What passed before, by compiler, flags and source."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.passed = json.loads(path.read_text()) if path.exists() else {}

    def holds(self, key):
        record = self.passed.get(key)
        return record and digest_of(record["files"]) == record["digest"]

    def add(self, key, files):
        with self.lock:
            self.passed[key] = {"files": files, "digest": digest_of(files)}
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.passed))
            new.replace(self.path)


def sources(build, is_msvc, only=()):
    """Compilations of the library, or of some of its sources; each kernel for the last instruction
    set alone."""
    by_file = {}
    for entry in json.loads((Path(build) / "compile_commands.json").read_text()):
        path = Path(entry["file"]).relative_to(ROOT)
        if path.suffix != ".cpp" or path.parts[0] not in ("src", "kernels"):
            continue
        if only and str(path) not in only:
            continue
        if path.is_relative_to("kernels/cuda"):  # nvcc's, and its emulation
            continue
        if is_msvc and str(path).startswith(NOT_FOR_MSVC):
            continue
        by_file[path] = entry
    return list(by_file.values())


def check_all(compiler, entries, known):
    """Returns the messages of the sources that do not pass, and how many were checked anew."""
    program = [word for word in shlex.split(compiler) if word != "msvc"]
    version = subprocess.run([*program, "--version"], capture_output=True, text=True).stdout

    def one(entry):
        command = command_of(compiler, entry)
        key = hashlib.sha256(json.dumps([version, command, entry["file"]]).encode()).hexdigest()
        if known.holds(key):
            return None
        text, files = check(command, entry)
        if not text:
            known.add(key, files)
        return text

    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("TT_JOBS", 2))) as pool:
        texts = list(pool.map(one, entries))
    return [text for text in texts if text], sum(text is not None for text in texts)


def main(build, *compilers):
    only = ()
    if compilers[0] == "--only":
        only = compilers[1].split(",")
        compilers = compilers[2:]
    known = Known(Path(build) / "pedantic.json")
    failed = False
    for compiler in compilers:
        entries = sources(build, compiler.startswith("msvc "), only)
        texts, new = check_all(compiler, entries, known)
        print(
            f"{compiler}: {len(entries)} sources, {len(texts)} with a warning or an error", end=""
        )
        print(f"; {new} checked now, the others before")
        print(*texts[: int(os.environ.get("TT_SHOWN", 3))], sep="\n", end="", flush=True)
        failed |= bool(texts)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
