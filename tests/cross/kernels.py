#!/usr/bin/env python3
"""Builds tests of kernels for ARM with no more of the library than they call, and runs them in
qemu: kernels.py BUILD FOLDER [aarch64|armhf].

What they call is found by the names that the objects of BUILD, a build of this machine, define and
need. `./dev cross TARGET` builds all of the library, which takes minutes.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILERS = {"aarch64": "aarch64-linux-gnu-g++", "armhf": "arm-linux-gnueabihf-g++"}
EMULATORS = {
    "aarch64": ("qemu-aarch64", "qemu-aarch64-static"),
    "armhf": ("qemu-arm", "qemu-arm-static"),
}
KERNELS = "kernels/cpu/CMakeFiles/tt_cpu_baseline.dir"
# Tests of tests/cpp, and which of their cases: those that need little time in an emulator.
PROGRAMS = {
    "aarch64": {
        "matmul": "Matmul.RoundingOfBf16IsBounded:Matmul.BatchesOfShortSums:Matmul.NanAndInf*"
    },
    "armhf": {"matmul": "Matmul.Neon*:Matmul.NanAndInf*"},
}
# Linked as well: products of bytes call code that only 64-bit ARM has, as does cpuid.cpp, and
# products of bf16 name kernels of the baseline where there is no AVX-512.
ALSO = (
    f"{KERNELS}/quant/int8.cpp.o",
    f"{KERNELS}/matmul/bf16_amx.cpp.o",
    f"{KERNELS}/matmul/f32_amx.cpp.o",
    "CMakeFiles/tt_objects.dir/src/base/os_linux.cpp.o",
)


def missing(target):
    """What must be installed for it; an empty string where nothing is missing."""
    if not shutil.which(COMPILERS[target]):
        return COMPILERS[target]
    if not any(map(shutil.which, EMULATORS[target])):
        return EMULATORS[target][0]
    return ""


def output(*command, **options):
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def symbols(build, objects):
    """Object -> names that it needs, and name -> object that defines it."""
    needs, home, weak = {}, {}, {}
    for line in output("nm", "-A", *objects, cwd=build).splitlines():
        path, _, rest = line.partition(":")
        kind, name = rest.split()[-2:]
        if kind == "U":
            needs.setdefault(path, set()).add(name)
        elif kind in "VW":
            weak.setdefault(name, path)
        elif kind.isupper():
            home[name] = path
    return needs, {**weak, **home}


def closure(build, roots):
    """The roots with the objects that define what they need, and what those need."""
    folders = ("CMakeFiles/tt_objects.dir", "CMakeFiles/tt_cxx_terminate.dir", KERNELS)
    library = [path.relative_to(build) for top in folders for path in (build / top).rglob("*.o")]
    needs, home = symbols(build, [*library, *roots])
    found, waiting = [], list(roots)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.append(path)
            waiting += {home[name] for name in needs.get(path, ()) if name in home}
    return found


def compiled(build):
    """The objects of a build."""
    targets = output("ninja", "-C", build, "-t", "targets", "all").splitlines()
    return {line.partition(":")[0] for line in targets if "CXX_COMPILER" in line}


def main(build, folder, target="aarch64"):
    jobs = os.environ.get("TT_JOBS") or os.cpu_count()
    emulator = next(filter(shutil.which, EMULATORS[target]))
    programs = PROGRAMS[target]
    tests = {name: f"tests/cpp/CMakeFiles/{name}_test.dir/{name}_test.cpp.o" for name in programs}
    toolchain = ROOT / f"cmake/toolchains/{target}.cmake"
    options = ["-G", "Ninja", "--toolchain", toolchain]
    if target == "aarch64":
        options += ["-DTT_ISAS=baseline"]
    options += ["-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"]  # gtest.h, for one program
    output("cmake", "-S", ROOT, "-B", folder, *options)
    of_arm = compiled(folder) - compiled(build)
    # Of NEON's kernels in 32-bit ARM those of products.
    kernels = "kernels/cpu/" if target == "aarch64" else "kernels/cpu/.*/matmul/"
    own = [path for path in of_arm if re.match(kernels, path)]
    needed = {name: [*closure(build, [path, *ALSO]), *own] for name, path in tests.items()}
    library = {path for paths in needed.values() for path in paths}
    output("ninja", "-C", folder, "-j", jobs, "gtest", "gtest_main", *sorted(library))
    for name, cases in programs.items():
        program = folder / f"{name}_test"
        archives = [folder / "lib/libgtest_main.a", folder / "lib/libgtest.a"]
        output(COMPILERS[target], "-static", *needed[name], *archives, "-o", program, cwd=folder)
        environment = dict(os.environ, QEMU_CPU="max", TT_TEST_SHARE="16")
        command = [emulator, program, f"--gtest_filter={cases}"]
        print(output(*command, env=environment).splitlines()[-1])
    print(f"{len(library)} objects")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), *sys.argv[3:])
