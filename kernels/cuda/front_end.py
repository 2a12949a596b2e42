#!/usr/bin/env python3
"""Checks kernels by nvcc's front end for device code alone, which takes a tenth of the time of a
build: code under __CUDACC__, intrinsics, and C++ that g++ reads in another way. Not checked are
calls of host functions on a device, and what code generation finds: frames, spills, sizes.

    front_end.py [--all] [FILE…]

Without FILE a quarter of those that the sample of ./dev cuda leaves out, another one with each
commit; --all: all of them. FILE is as in CMakeLists.txt: norm/layer_norm."""
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLAGS = ["-std=c++20", "-O2", "-fmad=false", "-arch=compute_90a", "--Werror", "all-warnings"]
FLAGS += [f"-I{path}" for path in (ROOT, ROOT / "src", ROOT / "include")]
SHARES = 4


def nvcc():
    return shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def script(source, folder):
    """What nvcc would run to make PTX, up to its front end, as lines of a shell."""
    command = [nvcc(), "--dryrun", *FLAGS, "-Xcicc", "--no_code_gen", "-ptx", str(source)]
    told = subprocess.run(
        [*command, "-o", f"{folder}/none.ptx"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": folder},
    ).stderr
    lines = [line[3:] for line in told.splitlines() if line.startswith("#$ ")]
    settings = [line for line in lines if line.startswith(("CICC_PATH=", "NVVMIR_LIBRARY_DIR="))]
    steps = [line for line in lines if line.startswith("gcc ") or "/cicc" in line.split(" ")[0]]
    if len(steps) != 2 or "--no_code_gen" not in steps[1]:
        return None, told
    return "\n".join(["set -e", *settings, *steps]), told


def check(name):
    """What the front end says of a file; "" if nothing."""
    with tempfile.TemporaryDirectory() as folder:
        text, told = script(HERE / f"{name}.cu", folder)
        if text is None:
            return f"{name}: nvcc does not say how it compiles:\n{told}"
        done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
        said = (done.stdout + done.stderr).strip()
        return f"{name}:\n{said}" if said else ""  # its status is 1, since it makes nothing


def share():
    """A quarter of the files that the sample leaves out."""
    text = (HERE / "CMakeLists.txt").read_text()
    sample = text.split("set(cuda_sources ")[1].split(")")[0].split()
    names = sorted(str(path.relative_to(HERE))[:-3] for path in HERE.glob("*/*.cu"))
    rest = [name for name in names if name not in sample]
    if "--all" in sys.argv:
        return rest
    count = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return rest[int(count or 0) % SHARES :: SHARES]


def main():
    names = [name for name in sys.argv[1:] if not name.startswith("-")] or share()
    with ThreadPoolExecutor(int(os.environ.get("TT_JOBS") or os.cpu_count() or 1)) as pool:
        faults = [fault for fault in pool.map(check, names) if fault]
    print(
        "\n".join([*faults, f"nvcc's front end: {len(names) - len(faults)} of {len(names)} files"])
    )
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
