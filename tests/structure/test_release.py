"""Packages of a release: complete, relocatable, and the same bytes each time."""
import hashlib
import os
import re
import subprocess
import sys
import tarfile

import pytest
from common import BUILD, ROOT, cached, run

pytestmark = pytest.mark.skipif(
    cached("CMAKE_BUILD_TYPE") != "Release" or cached("TT_PREFIX") != "",
    reason="a release has Release builds",
)


def release(folder):
    run(sys.executable, ROOT / "cmake/release.py", "--build", BUILD, "--out", folder, "--no-crates")
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return release(tmp_path_factory.mktemp("dist"))


def find(packages, pattern):
    [name] = [name for name in packages if re.fullmatch(pattern, name)]
    return packages[name]


def unpack(archive, folder):
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    [top] = folder.iterdir()
    return top


def test_checksums_are_right(packages):
    lines = packages["SHA256SUMS"].read_text().splitlines()
    assert len(lines) == len(packages) - 1 == 3
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256(packages[name].read_bytes()).hexdigest() == digest


def test_the_same_bytes_again(packages, tmp_path):
    again = release(tmp_path)
    assert again["SHA256SUMS"].read_text() == packages["SHA256SUMS"].read_text()


def test_a_program_of_the_archive(packages, tmp_path):
    top = unpack(find(packages, r"tt-[\d.]+-linux-\w+\.tar\.gz"), tmp_path)
    [config] = top.rglob("tt.pc")
    env = dict(os.environ, PKG_CONFIG_PATH=str(config.parent))
    flags = run("pkg-config", "--cflags", "--libs", "tt", env=env).split()
    library = config.parents[1]
    run(
        "cc",
        ROOT / "tests/structure/add.c",
        *flags,
        f"-Wl,-rpath,{library}",
        "-o",
        tmp_path / "add",
    )
    run(tmp_path / "add")
    assert "tt-export" in run(top / "bin/tt-export", "--help")
    assert (top / "share/doc/tt/LICENSE").exists()


def test_the_wheel_is_for_this_system(packages, tmp_path):
    wheel = find(packages, r"tt-[\d.]+-py3-none-manylinux_\d+_\d+_\w+\.whl")
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode:
        pytest.skip("pip is not installed")
    run(*pip, "install", "-q", "--no-index", "--no-deps", "--target", tmp_path, wheel)


def test_the_julia_package_has_its_library(packages, tmp_path):
    top = unpack(find(packages, r"tt-julia-[\d.]+-linux-\w+\.tar\.gz"), tmp_path)
    assert (top / "lib/libtt.so").exists() and (top / "src/TT.jl").exists()


def test_an_unknown_target_is_refused():
    command = [sys.executable, ROOT / "cmake/release.py", "amiga"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "no target amiga" in done.stderr
