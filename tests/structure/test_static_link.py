"""Static programs contain only what they call: `cc app.c $(pkg-config --static --cflags --libs tt)`
of an installed tree."""
import os
import re
import signal
import subprocess

import pytest
from common import BUILD, ROOT, cached, run

pytestmark = pytest.mark.skipif(
    bool(cached("TT_SANITIZE")) or cached("CMAKE_BUILD_TYPE") == "Debug",
    reason="sizes are of a release",
)
HERE = ROOT / "tests/structure"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    root = tmp_path_factory.mktemp("install")
    run("cmake", "--install", BUILD, "--prefix", root)
    return root


def pkg_config(prefix, *flags):
    [pc] = prefix.rglob("tt.pc")
    env = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent))
    return run("pkg-config", *flags, "tt", env=env).split()


def linked(prefix, program, *flags):
    """add.c, linked as bench/size.py does: without padding between code and constants."""
    run(
        "cc",
        "-O2",
        "-Wl,-z,noseparate-code",
        *flags,
        HERE / "add.c",
        *pkg_config(prefix, "--static", "--cflags", "--libs"),
        "-o",
        program,
    )
    return program


@pytest.fixture(scope="module")
def adder(prefix, tmp_path_factory):
    return linked(prefix, tmp_path_factory.mktemp("add") / "add")


def test_runs_and_needs_libc_alone(adder):
    run(adder)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-dW", adder)))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def test_holds_no_other_operator(adder):
    names = set(re.findall(r"\bop_(\w+)", run("nm", "-C", adder)))
    assert "add" in names
    strangers = {
        "matmul",
        "exp",
        "softmax",
        "sum",
        "cat",
        "gather",
        "layer_norm",
        "conv2d",
        "sub",
        "mul",
    } & names
    assert not strangers


def test_has_no_list_of_all_operators(adder):
    assert not re.search(r"\b(all_ops|manifest_text)\b", run("nm", "-C", adder))


def test_graph_with_its_operators(prefix, tmp_path):
    flags = pkg_config(prefix, "--static", "--cflags", "--libs")
    run("cc", "-O2", HERE / "save_graph.c", *flags, "-o", tmp_path / "save")
    run(tmp_path / "save", cwd=tmp_path)
    sources = [HERE / "load_graph.c", tmp_path / "net_ops.c"]
    run("cc", "-O2", *sources, *flags, "-s", "-o", tmp_path / "stripped")
    run("cc", "-O2", *sources, *flags, "-o", tmp_path / "load")
    run(tmp_path / "load", cwd=tmp_path)
    symbols = run("nm", "-C", tmp_path / "load")
    names = set(re.findall(r"\bop_(\w+)", symbols))
    assert "tanh" in names and not {"exp", "softmax", "conv2d", "gather", "cumsum"} & names
    assert not re.search(r"\b(all_ops|manifest_text)\b", symbols)
    assert (tmp_path / "stripped").stat().st_size <= 900_000


def test_size(adder, tmp_path):
    run("strip", "-o", tmp_path / "add", adder)
    assert (tmp_path / "add").stat().st_size <= 250_000


def test_uncaught_exceptions_are_printed(prefix, tmp_path):
    """tt's terminate handler, which has no demangler, serves applications in C++, too."""
    source = tmp_path / "uncaught.cpp"
    source.write_text(
        "#include <stdexcept>\n#include <tt.h>\nint main(int n, char**) {\n  tt_ctx* c;\n"
        '  if (tt_ctx_new(nullptr, &c)) return 1;\n  if (n == 1) throw std::runtime_error("why");\n'
        "  throw n;\n}\n"
    )
    flags = pkg_config(prefix, "--static", "--cflags", "--libs")
    run("c++", source, *flags, "-o", tmp_path / "uncaught")
    for args, said in (
        ([], "an instance of 'St13runtime_error'\n  what():  why\n"),
        (["2"], "an instance of 'i'\n"),
    ):
        done = subprocess.run([tmp_path / "uncaught", *args], capture_output=True, text=True)
        assert done.returncode == -signal.SIGABRT
        assert done.stderr == f"terminate called after throwing {said}"


def test_size_of_a_trainer(prefix, tmp_path):
    sources = [
        ROOT / "examples/c" / name for name in ("train_digits.c", "digits_data.c", "report.c")
    ]
    run(
        "cc",
        "-O2",
        *sources,
        *pkg_config(prefix, "--static", "--cflags", "--libs"),
        "-s",
        "-o",
        tmp_path / "train_digits",
    )
    assert (tmp_path / "train_digits").stat().st_size <= 2_600_000
    run(tmp_path / "train_digits", "--epochs", "1", "--svg", tmp_path / "curve.svg", cwd=ROOT)


def test_dynamic_host(prefix, tmp_path):
    run(
        "cc",
        "-O2",
        "-Wl,-z,noseparate-code",  # as bench/size.py links: no padding between code and constants
        HERE / "add.c",
        *pkg_config(prefix, "--cflags", "--libs"),
        "-o",
        tmp_path / "add",
    )
    [lib] = prefix.rglob("libtt.so.0")
    assert "libtt.so.0" in run("readelf", "-dW", tmp_path / "add")
    run(tmp_path / "add", env=dict(os.environ, LD_LIBRARY_PATH=str(lib.parent)))


def test_cmake_package(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(host C)\nfind_package(tt 0.1 REQUIRED CONFIG)\n"
        f"add_executable(dynamic {HERE / 'add.c'})\ntarget_link_libraries(dynamic tt::tt)\n"
        f"add_executable(static {HERE / 'add.c'})\ntarget_link_libraries(static tt::tt_static)\n"
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "b")
    run(tmp_path / "b/dynamic")
    run(tmp_path / "b/static")
    run("strip", tmp_path / "b/static")
    assert (tmp_path / "b/static").stat().st_size <= 250_000  # only the operators that it calls


def test_library_size(tmp_path):
    run("strip", "-o", tmp_path / "libtt.so", BUILD / "libtt.so")
    assert (tmp_path / "libtt.so").stat().st_size <= 9_000_000
