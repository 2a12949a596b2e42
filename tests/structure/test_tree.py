"""The tree: every source is in a build list, every directory of src explains itself, files stay readable, nothing generated is stale."""
import re
import sys

from common import ROOT, per_file, run, sources

HAND_WRITTEN = [p for p in sources("src", "kernels", "tests", "bench", "examples", "bindings", "include",
                                   suffixes=(".h", ".cpp", ".c", ".cu", ".py", ".rs", ".jl"))
                if not any(part in str(p) for part in ("gen/", "/_ops/", "rust/target/"))
                and p.name not in ("tt_ops.h", "_layouts.py", "generated.py", "declarations.rs", "rows.rs")]


@per_file(sources("src", "kernels/cpu", suffixes=(".cpp",)))
def test_source_is_built(path):
    assert re.search(rf"\b{re.escape(path.name)}\b", (path.parent / "CMakeLists.txt").read_text())


@per_file(sources("tests/c", "tests/cpp", suffixes=(".c", ".cpp")))
def test_test_is_built(path):
    name = path.stem.removesuffix("_test")
    assert re.search(rf"\b{re.escape(name)}\b", (path.parent / "CMakeLists.txt").read_text())


@per_file(sorted(p for p in (ROOT / "src").iterdir() if p.is_dir()))
def test_directory_has_a_short_readme(path):
    assert 1 <= len((path / "README.md").read_text().splitlines()) <= 30


@per_file(sources("src/ops", suffixes=(".h", ".cpp")))
def test_errors_of_operators_name_the_argument(path):
    assert not re.search(r"\bfail\(TT_(SHAPE|DTYPE|INDEX|INVALID_ARG|NOT_IMPLEMENTED)", path.read_text()), "use fail_arg"


@per_file(HAND_WRITTEN)
def test_file_is_at_most_1000_lines(path):
    assert len(path.read_text().splitlines()) <= 1000


def test_reading_order_is_short():
    text = (ROOT / "src/README.md").read_text()
    files = re.findall(r"^\d+\. `([\w./]+)`(.*)", text[text.index("## Reading order"):], re.M)
    assert len(files) == 10
    whole = [name for name, rest in files if "search" not in rest and not name.endswith(".toml")]
    assert sum(len((ROOT / "src" / name).read_text().splitlines()) for name in whole) <= 1500


def test_generated_files_are_current():
    run(sys.executable, ROOT / "src/ops/gen.py", "--check")
