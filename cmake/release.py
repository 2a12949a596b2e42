#!/usr/bin/env python3
"""Packages of a release: release.py [--out DIR] [--build DIR] [TARGET…]

For this machine and each TARGET (a file of cmake/toolchains), written to DIR, by default dist/:

    tt-VERSION-TARGET.tar.gz (.zip for Windows)  headers, libraries, tt-export, pkg-config and
                                                 CMake package
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
import struct
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
    "macos": ("macos-arm64", "macosx_11_0_arm64"),
}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def commit_time():
    done = run("git", "-C", ROOT, "log", "-1", "--format=%ct", capture_output=True, text=True)
    return int(done.stdout)


def built(target, jobs):
    """The folder of a Release build for a target: that of `./dev cross`, which tests it."""
    folder = ROOT / (f"build-release-{target}" if target == NATIVE else f"build-{target}")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-UTT_ISAS"]
    if target != NATIVE:
        options += ["--toolchain", ROOT / f"cmake/toolchains/{target}.cmake"]
    if not (folder / "CMakeCache.txt").exists():
        options.append("-DTT_TESTS=OFF")
        if shutil.which("ninja"):
            options += ["-G", "Ninja"]
    run("cmake", "-S", ROOT, "-B", folder, *options, stdout=subprocess.DEVNULL)
    targets = ["tt", "tt_static", "tt_engines", "tt_export"]
    run("cmake", "--build", folder, "-j", jobs, "--target", *targets)
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
    libraries = [
        *folder.glob("lib*/**/libtt.so"),
        *folder.glob("lib/libtt.dylib"),
        *folder.glob("bin/*tt*.dll"),
    ]
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


def write_crates(out, scratch):
    """The crates, packed in a workspace of their own, and compiled as they were packed, without
    libtt.

    Cargo's own check would look up the optional dependencies in its index, so none is needed here.
    """
    space = scratch / "rust"
    ignore = shutil.ignore_patterns("target")
    crates = ["tt-sys", "tt"]
    for crate in crates:
        shutil.copytree(ROOT / "bindings/rust" / crate, space / crate, ignore=ignore)
        shutil.copy(ROOT / "LICENSE", space / crate)
    (space / "Cargo.toml").write_text(
        f'[workspace]\nmembers = {json.dumps(crates)}\nresolver = "2"\n'
    )
    target = scratch / "target"
    environment = dict(os.environ, DOCS_RS="1", CARGO_TARGET_DIR=str(target))
    options = ["--quiet", "--offline", "--allow-dirty", "--workspace", "--no-verify"]
    known = run("cargo", "package", "--help", capture_output=True, text=True).stdout
    if "--exclude-lockfile" in known:  # newer ones would write the lock file, from the index
        options.append("--exclude-lockfile")
    run("cargo", "package", *options, cwd=space, env=environment)
    archives = [target / f"package/{crate}-{VERSION}.crate" for crate in crates]
    for archive in archives:
        with tarfile.open(archive) as tar:
            tar.extractall(scratch / "crates")
        shutil.copy(archive, out)
    manifest = scratch / f"crates/tt-{VERSION}/Cargo.toml"
    optional = r"\[dependencies\.(.*)\]\nversion = .*\noptional = true\n"
    text = manifest.read_text()
    features = "".join(f"{name} = []\n" for name in re.findall(optional, text))
    text = re.sub(optional, "", text) + f'path = "../tt-sys-{VERSION}"\n'  # the last is tt-sys
    manifest.write_text(f"{text}\n[features]\n{features}")
    run("cargo", "check", "--quiet", "--offline", cwd=manifest.parent, env=environment)


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
        tree_archive = out / f"{top}.{'zip' if target == 'mingw-w64' else 'tar.gz'}"
        check(tree_archive, ["/include/tt.h", "/tt.pc", "/tt-config.cmake", "/doc/tt/LICENSE"])
        check(out / wheel, ["tt/__init__.py", "tt/py.typed", "/WHEEL", "/RECORD"])
        check(out / f"{julia}.tar.gz", ["/Project.toml", "/src/TT.jl"])
        print(f"{target}: {tree_archive.name}, {wheel}, {julia}.tar.gz", flush=True)


def machine_of(library):
    """The processor that a shared library is for, by its header."""
    if library[:4] == b"\x7fELF":
        [code] = struct.unpack_from("<H", library, 18)
        return {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}[code]
    if library[:4] == b"\xcf\xfa\xed\xfe":  # Mach-O
        [code] = struct.unpack_from("<I", library, 4)
        return {0x0100000C: "arm64"}[code]
    [header] = struct.unpack_from("<I", library, 0x3C)
    [code] = struct.unpack_from("<H", library, header + 4)
    return {0x8664: "amd64"}[code]


def unpacked(archive):
    """Name -> bytes of the files of an archive, which is read to its end."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as z:
            return {name: z.read(name) for name in z.namelist()}
    with tarfile.open(archive) as tar:
        return {item.name: tar.extractfile(item).read() for item in tar if item.isreg()}


def check(archive, parts):
    """A package has these files, no debugging information, and one library, for the processor that
    its name says."""
    files = unpacked(archive)
    for name, data in files.items():
        assert b".debug_info" not in data, f"{archive.name}: {name} has debugging information"
    for part in parts:
        assert any(name.endswith(part) for name in files), f"{archive.name} has no {part}"
    libraries = [name for name in files if re.search(r"libtt\.(so[\d.]*|[\d.]*dylib|dll)$", name)]
    assert len(libraries) == 1, f"{archive.name} has {libraries}"
    machine = machine_of(files[libraries[0]])
    named = archive.name.replace("windows-x86_64", "windows-amd64")
    assert machine in named, f"{archive.name} has a library for {machine}"


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
            write_crates(args.out, Path(folder))
    write_sums(args.out)


if __name__ == "__main__":
    main()
