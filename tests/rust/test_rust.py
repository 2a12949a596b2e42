"""What surrounds the Rust binding's own tests: its completeness, how it finds libtt, its example
beside the C one."""
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TT_BUILD"])
CRATES = ROOT / "bindings/rust"
PROGRAMS = BUILD / "rust/debug/examples"
ENVIRONMENT = {
    k: v for k, v in os.environ.items() if k not in ("TT_LIB_DIR", "LD_LIBRARY_PATH", "TT_STATIC")
}


def run(*command, cwd=None, **variables):
    return subprocess.run(
        [str(c) for c in command],
        text=True,
        capture_output=True,
        cwd=cwd,
        env=ENVIRONMENT | {k: str(v) for k, v in variables.items()},
    )


def cargo(*args, folder=CRATES, locked=True, **options):
    return run(
        os.environ["TT_CARGO"],
        *args,
        *("--quiet", "--offline"),
        *(["--locked"] if locked else []),
        *("--manifest-path", folder / "Cargo.toml"),
        **options,
    )


def code(text):
    return re.sub(r"^\s*//.*$", "", text, flags=re.M)


def test_every_c_function_is_used_or_excluded_with_a_reason():
    used = set(
        re.findall(
            r"\btt_\w+",
            "".join(code(p.read_text()) for p in sorted((CRATES / "tt/src").rglob("*.rs"))),
        )
    )
    rows = [
        line.split(None, 1)
        for line in (CRATES / "excluded.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    excluded = {name: reason for name, reason in rows}
    exports = set((ROOT / "src/capi/gen/exports.txt").read_text().split())
    assert exports - used == set(excluded)


def test_a_missing_library_is_explained(tmp_path):
    done = cargo("build", "-p", "tt-sys", TT_LIB_DIR=tmp_path, CARGO_TARGET_DIR=tmp_path / "target")
    assert (
        done.returncode
        and "libtt.so was not found. Searched:" in done.stderr
        and f"{tmp_path} (TT_LIB_DIR)" in done.stderr
    )
    elsewhere = tmp_path / "rust"
    shutil.copytree(CRATES, elsewhere, ignore=shutil.ignore_patterns("target"))
    done = cargo(
        "build",
        "-p",
        "tt-sys",
        folder=elsewhere,
        CARGO_TARGET_DIR=tmp_path / "target",
        PKG_CONFIG_PATH=tmp_path,
    )
    assert (
        done.returncode
        and "(the source tree's build)" in done.stderr
        and "pkg-config" in done.stderr
    )


def test_documentation_has_no_warnings():
    done = cargo("doc", "-p", "tt", "--no-deps", TT_LIB_DIR=BUILD, RUSTDOCFLAGS="-Dwarnings")
    assert done.returncode == 0, done.stderr


def test_clippy_has_no_warnings(tmp_path):
    """Where it is installed."""
    if not Path(os.environ["TT_CARGO"]).with_name("cargo-clippy").exists():
        pytest.skip("no clippy")
    for arguments in (["-p", "tt"], ["--workspace"]):
        options = [*arguments, "--all-targets", "--", "-Dwarnings"]
        done = run(
            os.environ["TT_CARGO"], "clippy", "--offline", *options, cwd=CRATES, TT_LIB_DIR=BUILD
        )
        assert done.returncode == 0, done.stderr


def test_the_crate_compiles_by_the_oldest_compiler(tmp_path):
    """Debian 12's, of the version that Cargo.toml names, where another one is first in PATH."""
    debian = {"cargo": "/usr/bin/cargo", "rustc": "/usr/bin/rustc"}
    if not all(map(os.path.exists, debian.values())):
        pytest.skip("no compiler of Debian")
    if os.path.samefile(os.environ["TT_CARGO"], debian["cargo"]):
        pytest.skip("compiles everything")
    done = run(
        *(debian["cargo"], "check", "-p", "tt", "-p", "tt-examples", "--quiet", "--offline"),
        *("--locked", "--manifest-path", CRATES / "Cargo.toml"),
        RUSTC=debian["rustc"],
        TT_LIB_DIR=BUILD,
        CARGO_TARGET_DIR=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_the_crate_compiles_in_the_edition_of_2024(tmp_path):
    """Where the compiler has it. tt-sys keeps 2021: `unsafe extern` needs Rust 1.82."""
    version = run(os.environ["TT_CARGO"], "--version").stdout.split()[1]
    if tuple(map(int, version.split(".")[:2])) < (1, 85):
        pytest.skip(f"cargo {version}")
    for crate in ("tt", "tt-sys"):
        shutil.copytree(CRATES / crate, tmp_path / crate, ignore=shutil.ignore_patterns("target"))
    manifest = tmp_path / "tt/Cargo.toml"
    text = manifest.read_text().replace('edition = "2021"', 'edition = "2024"')
    text = text.replace('rust-version = "1.63"\n', "")
    manifest.write_text(re.sub(r"(?m)^.*optional = true.*\n", "", text) + "\n[workspace]\n")
    done = cargo(
        "check",
        folder=tmp_path / "tt",
        locked=False,
        TT_LIB_DIR=BUILD,
        CARGO_TARGET_DIR=tmp_path / "target",
    )
    assert done.returncode == 0, done.stderr


DEPENDENT = {
    "Cargo.toml": """[package]
name = "dependent"
version = "0.1.0"
edition = "2021"
links = "dependent"
[dependencies]
tt-sys = { path = "ROOT/bindings/rust/tt-sys" }
""",
    "build.rs": """fn main() {
    for name in ["DEP_TT_LIB_DIR", "DEP_TT_INCLUDE"] {
        println!("cargo:warning={}={}", name, std::env::var(name).unwrap_or_default());
    }
}
""",
    "src/lib.rs": "pub use tt_sys::tt_version;",
}


def dependent(folder, **options):
    """Builds a crate over tt-sys whose build script shows what tt-sys tells it."""
    (folder / "src").mkdir()
    for name, text in DEPENDENT.items():
        (folder / name).write_text(text.replace("ROOT", str(ROOT)))
    options.setdefault("CARGO_TARGET_DIR", folder / "target")
    command = [os.environ["TT_CARGO"], "build", "--offline"]  # not --quiet: it hides warnings
    return run(*command, cwd=folder, **options)


def test_build_scripts_of_dependents_are_told_where_tt_is(tmp_path):
    done = dependent(tmp_path, TT_LIB_DIR=BUILD)
    assert f"DEP_TT_LIB_DIR={BUILD.resolve()}\n" in done.stderr, done.stderr
    assert f"DEP_TT_INCLUDE={ROOT / 'include'}\n" in done.stderr


@pytest.mark.parametrize("base", ["where cargo is called", "above the target directory"])
def test_a_relative_directory(tmp_path, base):
    (tmp_path / "lib").symlink_to(BUILD)
    (tmp_path / "app").mkdir()
    called = tmp_path if base == "where cargo is called" else "/"
    done = dependent(tmp_path / "app", TT_LIB_DIR="lib", PWD=called)
    assert f"DEP_TT_LIB_DIR={BUILD.resolve()}\n" in done.stderr, done.stderr


def test_another_target_needs_a_directory_of_its_own(tmp_path):
    """Without a compiler for it: the build script alone runs."""
    target, host = "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"
    source, script = CRATES / "tt-sys/build.rs", tmp_path / "build"
    compiler = Path(os.environ["TT_CARGO"]).with_name("rustc")
    built = run(compiler, "--edition=2021", source, "-o", script)
    assert built.returncode == 0, built.stderr
    cargos = {"TARGET": target, "HOST": host, "OUT_DIR": tmp_path, "PKG_CONFIG_PATH": tmp_path}
    cargos["CARGO_MANIFEST_DIR"] = CRATES / "tt-sys"
    done = run(script, **cargos)
    assert done.returncode == 1 and "another target than this machine" in done.stderr
    done = run(script, **cargos, TT_LIB_DIR_aarch64_unknown_linux_gnu=BUILD, TT_LIB_DIR="/nowhere")
    assert done.returncode == 0 and f"cargo:lib_dir={BUILD.resolve()}\n" in done.stdout
    done = run(script, **cargos, PKG_CONFIG_ALLOW_CROSS=1)
    assert done.returncode == 1 and "pkg-config" in done.stderr


def test_documentation_needs_no_library(tmp_path):
    done = cargo("check", "-p", "tt", DOCS_RS=1, TT_LIB_DIR=tmp_path, CARGO_TARGET_DIR=tmp_path)
    assert done.returncode == 0, done.stderr


def test_an_installed_library_is_found_and_linked(tmp_path):
    install = run("cmake", "--install", BUILD, "--prefix", tmp_path / "usr")
    assert install.returncode == 0, install.stderr
    folder = next(tmp_path.glob("usr/lib*/pkgconfig"))
    shutil.copytree(CRATES, tmp_path / "rust", ignore=shutil.ignore_patterns("target"))
    manifest = tmp_path / "rust/examples/Cargo.toml"
    manifest.write_text(manifest.read_text().replace("../../../examples", str(ROOT / "examples")))
    done = cargo(
        "run",
        "--example",
        "hello",
        folder=tmp_path / "rust",
        CARGO_TARGET_DIR=tmp_path / "target",
        PKG_CONFIG_PATH=folder,
    )
    assert done.returncode == 0 and done.stdout.startswith("169.58"), done.stderr
    done = cargo(
        "run",
        "--example",
        "hello",
        folder=tmp_path / "rust",
        CARGO_TARGET_DIR=tmp_path / "target",
        PKG_CONFIG_PATH=folder,
        TT_STATIC=1,
    )
    assert done.returncode == 0 and done.stdout.startswith("169.58"), done.stderr
    assert "libtt" not in run("readelf", "-d", tmp_path / "target/debug/examples/hello").stdout


def test_another_version_is_an_error_that_names_both(tmp_path):
    """A library that tells its version and refuses the rest, as libtt does without a ctx."""
    names = (ROOT / "src/capi/gen/exports.txt").read_text().split()
    (tmp_path / "shim.c").write_text(
        'const char *tt_version(void) { return "0.77.3"; }\n'
        + "".join(
            f"long {n}(void) {{ return {0 if n == 'tt_ctx_error' else 12}; }}\n"
            for n in names
            if n != "tt_version"
        )
    )
    (tmp_path / "map").write_text("TT_0 { global: *; };\n")
    built = run(
        "cc",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libtt.so.0",
        f"-Wl,--version-script={tmp_path}/map",
        tmp_path / "shim.c",
        "-o",
        tmp_path / "libtt.so.0",
    )
    assert built.returncode == 0, built.stderr
    done = run(PROGRAMS / "hello", LD_LIBRARY_PATH=tmp_path)
    assert (
        done.returncode == 1
        and "version 0.77.3" in done.stderr
        and "needs version 0.1.0" in done.stderr
    ), done.stderr


def digits(program, *args):
    done = run(program, *args, "--data", ROOT / "examples/data/digits.csv", LD_LIBRARY_PATH=BUILD)
    assert done.returncode == 0, done.stderr
    return (
        float(re.fullmatch(r"test accuracy (\d+\.\d) %", done.stdout.splitlines()[-1]).group(1)),
        done.stdout,
    )


def test_the_example_learns_and_resumes(tmp_path):
    file, logits = tmp_path / "run", [tmp_path / n for n in ("whole", "rest")]
    whole, text = digits(PROGRAMS / "train_digits", "--seed", 2, "--logits", logits[0])
    assert whole >= 97.5 and re.search(
        r"[\r\n]epoch +30/30 \[#{30}\] loss 0\.\d{4}  \d+ samples/s  ETA 0\.0 s", text
    )
    digits(PROGRAMS / "train_digits", "--seed", 2, "--epochs", 2, "--checkpoint", file)
    rest, _ = digits(
        PROGRAMS / "train_digits",
        "--seed",
        9,
        "--epochs",
        2,
        "--resume",
        file,
        "--logits",
        logits[1],
    )
    assert rest > 80 and logits[1].stat().st_size == 297 * 10 * 4


@pytest.mark.skipif(not (BUILD / "libtt_gloo.so").exists(), reason="no libtt_gloo in this build")
def test_two_processes_train_one_model():
    launcher = [sys.executable, "-m", "tt.distributed.run", "--no-python", "--nproc-per-node=2"]
    paths = {"PYTHONPATH": ROOT / "bindings/python", "TT_LIBRARY": BUILD / "libtt.so"}
    done = run(*launcher, PROGRAMS / "train_ddp", LD_LIBRARY_PATH=BUILD, cwd=ROOT, **paths)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"2 processes: test accuracy (\S+) %", done.stdout).group(1)) > 80


@pytest.mark.parametrize("trained_by", ["c", "rust"])
def test_c_and_rust_agree_bit_by_bit(tmp_path, trained_by):
    programs = {"c": BUILD / "examples/train_digits", "rust": PROGRAMS / "train_digits"}
    svg = {"c": ["--svg", "/dev/null"], "rust": []}
    digits(
        programs[trained_by],
        "--seed",
        4,
        "--epochs",
        3,
        "--checkpoint",
        tmp_path / "run",
        "--logits",
        tmp_path / "trained",
        *svg[trained_by],
    )
    for language, program in programs.items():
        digits(
            program, "--evaluate", tmp_path / "run", "--logits", tmp_path / language, *svg[language]
        )
        assert (tmp_path / language).read_bytes() == (tmp_path / "trained").read_bytes()


@pytest.mark.parametrize(
    "args, why",
    [
        (("--rate", "1"), "unknown option --rate"),
        (("--rate",), "unknown option --rate"),
        (("--seed",), "no value for --seed"),
        (("--epochs", "many"), "invalid digit"),
        (("--data", "/nowhere"), "/nowhere: No such file"),
        (("--resume", "/nowhere"), "cannot be opened"),
    ],
)
def test_the_example_explains_what_is_wrong(args, why):
    done = run(
        PROGRAMS / "train_digits",
        "--data",
        ROOT / "examples/data/digits.csv",
        *args,
        LD_LIBRARY_PATH=BUILD,
    )
    assert done.returncode == 1 and why in done.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    file = tmp_path_factory.mktemp("trained") / "digits"
    digits(PROGRAMS / "train_digits", "--seed", 2, "--epochs", 3, "--checkpoint", file)
    return file


def serve(*args):
    return run(PROGRAMS / "serve_digits", *args, LD_LIBRARY_PATH=BUILD)


def test_the_server_tests_itself(trained):
    data = ROOT / "examples/data/digits.csv"
    done = serve("--model", trained, "--self-test", "--workers", 3, "--data", data)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "3 clients got what the model answers"
    assert float(re.fullmatch(r"accuracy (\d+\.\d) %", second).group(1)) > 90


def test_the_server_answers_errors_and_continues(trained):
    data = ROOT / "examples/data/digits.csv"
    command = [PROGRAMS / "serve_digits", "--model", trained, "--address", "127.0.0.1:0"]
    environment = ENVIRONMENT | {"LD_LIBRARY_PATH": str(BUILD)}
    server = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=environment)
    try:
        place = re.search(r"http://([\d.]+):(\d+)/classify", server.stdout.readline())
        host, port = place.group(1), int(place.group(2))
        length = "POST /classify HTTP/1.1\r\nContent-Length: {}\r\n\r\n"
        for request, answer in [
            ("GET / HTTP/1.1\r\n\r\n", "POST images to /classify"),
            (length.format(3) + "1,2", "an image has 64 pixels, not 2"),
            (length.format(5) + "1,two", "invalid float"),
            (length.format(1 << 60), ""),
            ("nonsense", ""),
            ("", ""),
        ]:
            with socket.create_connection((host, port), timeout=120) as connection:
                connection.sendall(request.encode())
                connection.shutdown(socket.SHUT_WR)
                assert answer in connection.makefile().read()
        done = serve("--ask", f"{host}:{port}", "--data", data)
        assert done.returncode == 0 and done.stdout.startswith("accuracy 9"), done.stderr
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize(
    "args, why",
    [
        ((), "--model FILE"),
        (("--model", "/nowhere"), "cannot be opened"),
        (("--workers", "many"), "invalid digit"),
        (("--rate",), "unknown option --rate"),
        (("--ask",), "no value for --ask"),
        (("--ask", "127.0.0.1:1", "--data", "/nowhere"), "No such file"),
    ],
)
def test_the_server_explains_what_is_wrong(args, why):
    done = serve(*args)
    assert done.returncode == 1 and why in done.stderr


@pytest.mark.parametrize("name", ["train_digits", "serve_digits"])
def test_help_lists_the_options(name):
    done = run(PROGRAMS / name, "--help", LD_LIBRARY_PATH=BUILD)
    assert done.returncode == 0 and done.stdout.startswith(f"usage: {name} ")
