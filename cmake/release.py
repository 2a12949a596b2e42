#!/usr/bin/env python3
"""Packages of a release: release.py [--out DIR] [--build DIR] [TARGET…]

For this machine and each TARGET (a file of cmake/toolchains), written to DIR, by default dist/:

    tt-VERSION-TARGET.tar.gz (.zip for Windows)  headers, libraries, pkg-config and CMake package
    tt-VERSION-py3-none-PLATFORM.whl             the Python package with the library
    tt-julia-VERSION-TARGET.tar.gz               the Julia package with the library in lib/
    tt-sys-VERSION.crate, tt-VERSION.crate       the Rust crates, once; they have no library
    SHA256SUMS                                   of all of them

Archives are the same bytes for the same commit and compiler: files are sorted and have the time of
the commit. --build packages a Release build that is there instead of building this machine's.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.search(r"project\(tt VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
NATIVE = f"linux-{platform.machine()}"
# target: (name in archives, Python's platform; None: by the symbols of glibc that it needs)
TARGETS = {
    NATIVE: (NATIVE, None),
    "aarch64": ("linux-aarch64", None),
    "armhf": ("linux-armv7l", None),
    "i686": ("linux-i686", None),
    "riscv64": ("linux-riscv64", None),
    "musl": ("linux-x86_64-musl", "musllinux_1_2_x86_64"),
    "mingw-w64": ("windows-x86_64", "win_amd64"),
}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def commit_time():
    done = run("git", "-C", ROOT, "log", "-1", "--format=%ct", capture_output=True, text=True)
    return int(done.stdout)


def built(target, jobs):
    """The folder of a Release build for a target."""
    folder = ROOT / f"build-release-{target}"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTT_TESTS=OFF"]
    if target != NATIVE:
        options += ["--toolchain", ROOT / f"cmake/toolchains/{target}.cmake"]
    if not (folder / "CMakeCache.txt").exists() and shutil.which("ninja"):
        options += ["-G", "Ninja"]
    run("cmake", "-S", ROOT, "-B", folder, *options, stdout=subprocess.DEVNULL)
    run("cmake", "--build", folder, "--target", "tt", "tt_static", "-j", jobs)
    return folder


def setting(build, name):
    """A variable of CMake's cache; empty where it is not set."""
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found.group(1) if found else ""


def installed(build, folder):
    """Installs a build into a folder, without debugging information; returns the library."""
    run("cmake", "--install", build, "--prefix", folder, "--strip", stdout=subprocess.DEVNULL)
    (folder / "share/doc/tt").mkdir(parents=True)
    for name in ("LICENSE", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder / "share/doc/tt")
    libraries = [*folder.glob("lib*/**/libtt.so"), *folder.glob("bin/*tt*.dll")]
    return libraries[0]


def contents(folder, top):
    """(name below top, path) of every file and link of a folder, sorted."""
    paths = sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return [(f"{top}/{path.relative_to(folder)}", path) for path in paths]


def write_tar(archive, folder, top, time):
    """A .tar.gz of a folder below the directory top, without owners and with one time."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in contents(folder, top):
            info = tar.gettarinfo(path, name)
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = time
            info.mode = 0o755 if info.mode & 0o100 else 0o644
            if info.isreg():
                with open(path, "rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    with open(archive, "wb") as file:
        with gzip.GzipFile("", "wb", 6, file, time) as packed:
            packed.write(plain.getvalue())


def write_zip(archive, folder, top):
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as z:
        for name, path in contents(folder, top):
            z.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)


def glibc_platform(library, machine):
    """Python's platform of a library for glibc: the newest version of glibc that it needs.

    https://peps.python.org/pep-0600
    """
    done = run("readelf", "-VW", library, capture_output=True, text=True)
    versions = {tuple(map(int, v)) for v in re.findall(r"GLIBC_(\d+)\.(\d+)", done.stdout)}
    if "GLIBC_ABI_DT_RELR" in done.stdout:
        versions.add((2, 36))
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{machine}"


def write_wheel(out, library, wheel_platform):
    sys.path.insert(0, str(ROOT / "bindings/python"))
    import build_wheel

    os.environ["TT_LIBRARY"] = str(library)
    return build_wheel.build_wheel(out, {"platform": wheel_platform})


def write_julia(archive, library, scratch, top, time):
    """The Julia package as it is, with the library where TT.jl looks first."""
    package = scratch / "julia"
    shutil.copytree(
        ROOT / "bindings/julia", package, ignore=shutil.ignore_patterns("*.toml.orig", "test")
    )
    (package / "lib").mkdir()
    shutil.copy(library, package / "lib")
    write_tar(archive, package, top, time)


def write_crates(out, scratch, offline):
    """The crates in a workspace of their own. Cargo compiles what it packed, without libtt.

    tt has optional dependencies, which cargo looks up in its index: offline there is tt-sys alone.
    """
    space = scratch / "rust"
    ignore = shutil.ignore_patterns("target")
    crates = ["tt-sys"] if offline else ["tt-sys", "tt"]
    for crate in crates:
        shutil.copytree(ROOT / "bindings/rust" / crate, space / crate, ignore=ignore)
        shutil.copy(ROOT / "LICENSE", space / crate)
    (space / "Cargo.toml").write_text(
        f'[workspace]\nmembers = {json.dumps(crates)}\nresolver = "2"\n'
    )
    target = scratch / "target"
    environment = dict(os.environ, DOCS_RS="1", CARGO_TARGET_DIR=str(target))
    options = ["--quiet", "--allow-dirty", "--workspace"]
    if offline:
        options.append("--offline")
    run("cargo", "package", *options, cwd=space, env=environment)
    for crate in sorted((target / "package").glob("*.crate")):
        shutil.copy(crate, out)


def package(target, build, out, time):
    name, wheel_platform = TARGETS[target]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        tree = scratch / "tree"
        library = installed(build, tree)
        top = f"tt-{VERSION}-{name}"
        if target == "mingw-w64":
            write_zip(out / f"{top}.zip", tree, top)
        else:
            write_tar(out / f"{top}.tar.gz", tree, top, time)
        if wheel_platform is None:
            wheel_platform = glibc_platform(library, name.split("-")[1])
        wheel = write_wheel(out, library, wheel_platform)
        julia = f"tt-julia-{VERSION}-{name}"
        write_julia(out / f"{julia}.tar.gz", library, scratch, julia, time)
        print(f"{target}: {top}, {wheel}, {julia}")


def write_sums(out):
    lines = []
    for path in sorted(out.iterdir()):
        if path.name != "SHA256SUMS":
            lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    (out / "SHA256SUMS").write_text("".join(lines))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--build", type=Path, help="a Release build of this machine")
    parser.add_argument("--no-crates", action="store_true", help="leave out what needs cargo")
    parser.add_argument(
        "--offline", action="store_true", help="of the crates tt-sys alone: tt needs cargo's index"
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="of cmake/toolchains, or all")
    args = parser.parse_args()
    targets = args.targets
    if targets == ["all"]:
        targets = [target for target in TARGETS if target != NATIVE]
    for target in targets:
        if target not in TARGETS:
            parser.error(f"no target {target}: there are {', '.join(TARGETS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    time = commit_time()
    jobs = os.environ.get("TT_JOBS") or os.cpu_count()
    for target in [NATIVE, *targets]:
        build = args.build if target == NATIVE and args.build else built(target, jobs)
        if setting(build, "CMAKE_BUILD_TYPE") != "Release":
            parser.error(f"{build} is not a Release build")
        package(target, build, args.out, time)
    if not args.no_crates:
        with tempfile.TemporaryDirectory() as folder:
            write_crates(args.out, Path(folder), args.offline)
    write_sums(args.out)


if __name__ == "__main__":
    main()
