"""The tree: every source is in a build list, every directory of src explains itself, nothing
generated is stale."""
import re
import subprocess
import sys
from pathlib import Path

from common import ROOT, per_file, run, sources


def build_list(path):
    """The CMakeLists.txt of a file's folder, or of the next folder above it that has one."""
    folder = path.parent
    while not (folder / "CMakeLists.txt").exists():
        folder = folder.parent
    return (folder / "CMakeLists.txt").read_text()


@per_file(sources("src", "kernels/cpu", suffixes=(".cpp",)))
def test_source_is_built(path):
    assert re.search(rf"\b{re.escape(path.name)}\b", build_list(path))


@per_file(sources("tests/c", "tests/cpp", suffixes=(".c", ".cpp")))
def test_test_is_built(path):
    name = path.stem.removesuffix("_test")
    assert re.search(rf"\b{re.escape(name)}\b", build_list(path))


@per_file(sorted(p for p in (ROOT / "src").iterdir() if p.is_dir()))
def test_directory_has_a_short_readme(path):
    assert 1 <= len((path / "README.md").read_text().splitlines()) <= 30


@per_file(sources("src/ops", suffixes=(".h", ".cpp")))
def test_errors_of_operators_name_the_argument(path):
    assert not re.search(
        r"\bfail\(TT_(SHAPE|DTYPE|INDEX|INVALID_ARG|NOT_IMPLEMENTED)", path.read_text()
    ), "use fail_arg"


def reading_orders():
    """The numbered files of each reading order of src/README.md, with the name to search for, if
    any."""
    for part in (ROOT / "src/README.md").read_text().split("eading order: ")[1:]:
        title = part.splitlines()[0]
        for name, rest in re.findall(r"^\d+\. `([\w./]+)`(.*)", part, re.M):
            searched = re.search(r"\(search `([^`]+)`\)", rest)
            yield title, name, searched.group(1) if searched else ""


def test_reading_orders_lead_through_files_that_exist():
    stops = list(reading_orders())
    assert len({title for title, _, _ in stops}) == 2
    for _, name, searched in stops:
        text = (ROOT / "src" / name).read_text()
        assert searched in text, f"{name} has no {searched!r}"


PATH = re.compile(
    r"`((?:\.\./)*[\w.-]+(?:/[\w.-]+)+\.(?:cpp|h|c|cu|py|toml|txt|md|rs|jl|json|lock))`"
)
# what paths in pages are relative to, beside the page's folder
PLACES = ("", "src", "kernels", "tests")
NO_PATHS = re.compile("FAMILY|NAME|^out/")  # patterns, and files that a program writes
WITH_PAGES = "src kernels docs tests bindings examples bench codegen".split()
PAGES = [
    p
    for p in [ROOT / "README.md", *sources(*WITH_PAGES, suffixes=(".md",))]
    if not re.search("docs/(benchmarks/|roadmap)|conformance/|/target/", str(p))
]


@per_file(PAGES)
def test_paths_in_pages_exist(path):
    bases = [path.parent, *(ROOT / place for place in PLACES)]
    names = [name for name in PATH.findall(path.read_text()) if not NO_PATHS.search(name)]
    assert [name for name in names if not any((base / name).exists() for base in bases)] == []


# Folders of more than 30 siblings, which are of one kind; a header and its source are one.
WIDE = {
    "bindings/python/tt": "modules at the paths that PyTorch's have; its README groups them",
    "bindings/python/tt/_ops": "a module per family, generated",
    "docs/reference": "a page per family",
    "src/ops/decl": "a file per family",
    "src/plan": "a plan and its builder per family",
    "tests/op_table/refs": "a file per family",
    "tests/op_table/samples": "a file per family",
}


def test_folders_hold_few_siblings_or_one_kind():
    siblings = {}
    for name in run("git", "-C", ROOT, "ls-files").splitlines():
        path = Path(name)
        siblings.setdefault(str(path.parent), set()).add(path.name.split(".")[0])
    wide = {folder for folder, names in siblings.items() if len(names) > 30}
    wide = {f for f in wide if not f.endswith("/gen") and "/conformance" not in f}
    assert wide <= set(WIDE)


def test_generated_files_are_current():
    run(sys.executable, ROOT / "codegen/gen.py", "--check")


def test_no_line_is_longer_than_100_columns():
    found = subprocess.run([ROOT / ".ci/columns"], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_a_long_line_is_noticed(tmp_path):
    lines = {
        "long.py": ["#" + "x" * 100, f'raise ValueError("{"x" * 100}")'],
        "long.md": ["x " * 51, "| " + "x" * 100, "# " + "x" * 100, "see https://" + "x" * 100],
        "long.toml": ["a = [" + "1, " * 40 + "]", 'a = { b = "' + "x" * 100 + '" }'],
    }
    for name, texts in lines.items():
        path = tmp_path / name
        path.write_text("\n".join(texts) + "\n")
        found = subprocess.run([ROOT / ".ci/columns", path], capture_output=True, text=True)
        first = f"{path}:1: {len(texts[0])} columns"
        assert found.stdout.splitlines() == [first] and found.returncode == 1
