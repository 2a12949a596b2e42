"""The README's program in each language, verbatim: all print the same."""
import os
import re
import sys
from math import exp

import pytest

from languages import BUILD, LANGUAGES, ROOT, cargo, julia, run

TEXT = (ROOT / "README.md").read_text()
PRINTED = re.search(r"^```text\n(.*?)^```$", TEXT, re.M | re.S).group(1)
PROGRAMS = dict(re.findall(r"^```(c|python|rust|julia)\n(.*?)^```$", TEXT, re.M | re.S))
MANIFEST = '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\ntt = {{ path = "{root}/bindings/rust/tt" }}\n'


def c_program(folder, source):
    (folder / "app.c").write_text(source)
    run(
        "cc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        ROOT / "include",
        folder / "app.c",
        "-L",
        BUILD,
        "-ltt",
        "-o",
        folder / "app",
    )
    return run(folder / "app")


def python_program(folder, source):
    (folder / "app.py").write_text(source)
    return run(sys.executable, folder / "app.py")


def rust_program(folder, source):
    (folder / "src").mkdir()
    (folder / "src/main.rs").write_text(source)
    (folder / "Cargo.toml").write_text(MANIFEST.format(root=ROOT))
    return cargo("run", manifest=folder / "Cargo.toml")


def julia_program(folder, source):
    (folder / "app.jl").write_text(source)
    return julia(folder / "app.jl")


def test_there_is_one_program_per_language():
    assert sorted(PROGRAMS) == ["c", "julia", "python", "rust"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_program_runs(language, tmp_path):
    run_in = {
        "c": c_program,
        "python": python_program,
        "rust": rust_program,
        "julia": julia_program,
    }[language]
    printed = run_in(tmp_path, PROGRAMS[language])
    assert printed.rstrip() == PRINTED.rstrip()
    loss, grad = printed.split("\n", 1)
    want = [2 * exp(x) for x in (1, 2, 3, 4)]
    assert loss == f"{sum(want):.2f}" and [
        float(x) for x in re.findall(r"\d+\.\d+", grad)
    ] == pytest.approx(want, abs=1e-4)


def test_the_first_blocks_are_what_ci_runs():
    first, second = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.M | re.S)[:2]
    assert (
        all(word in first for word in ("cargo", ".ci/install-julia", "./dev build"))
        and second.strip() == "./dev test"
    )
    assert os.access(ROOT / ".ci/install-julia", os.X_OK)
