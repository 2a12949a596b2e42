"""What the bindings expose of the C API (bindings/exposed.tsv, which gen.py --check keeps current):
all of it, or a reason why not."""
import fnmatch
import importlib
import operator
import re
import sys
from dataclasses import replace

import pytest

from common import ROOT, exports

sys.path.insert(0, str(ROOT))
from codegen.docs import bindings, operators  # noqa: E402
from codegen.model import exposed, headers  # noqa: E402

HEAD, *ROWS = [
    line.split("\t") for line in (ROOT / "bindings/exposed.tsv").read_text().splitlines()
]
HOOKS = {f"tt_runtime_opts.{h}" for h in bindings.HOOKS}


def test_every_function_of_c_has_its_row():
    assert HEAD == ["c", "python", "rust", "julia"] and all(
        len(row) == 4 and all(row) for row in ROWS
    )
    assert sorted(row[0] for row in ROWS) == sorted([*exports(), *HOOKS])


@pytest.mark.parametrize("language", ["python", "rust", "julia"])
def test_binding_lacks_nothing_of_c(language):
    k = HEAD.index(language)
    missing = [row[0] for row in ROWS if row[k] == "?"]
    assert (
        not missing
    ), f"{language} neither calls these nor says why in bindings/{language}/excluded.txt: {missing}"
    left = [row[k] for row in ROWS if row[k].startswith("- ")]
    assert len(left) < len(ROWS) / 10 and all(len(why) > 10 for why in left)


def test_a_new_function_of_c_is_noticed():
    api = headers.load(ROOT, {})
    api.functions.append(replace(api.functions[0], name="tt_tensor_shiny"))
    for language in bindings.LANGUAGES:
        assert (
            bindings.column(ROOT, api, getattr(exposed, language)(ROOT, {}), language)[
                "tt_tensor_shiny"
            ]
            == "?"
        )


def test_an_excluded_function_that_is_used_is_refused(monkeypatch):
    api = headers.load(ROOT, {})
    for wrong, why in (("tt_add", "is used"), ("tt_nowhere", "C does not have")):
        monkeypatch.setattr(bindings, "excluded", lambda root, language: {wrong: "for no reason"})
        with pytest.raises(bindings.AreaError, match=why):
            bindings.column(ROOT, api, exposed.rust(ROOT, {}), "rust")


def test_cells_name_what_the_binding_has():
    with pytest.raises(bindings.AreaError, match="julia has no conv9d"):
        bindings.check_words([({"name": "Layers", "julia": "`nn.conv9d(3)`"}, [])], "julia", {"nn"})


def test_names_of_c_in_the_page_are_declared():
    """Its other columns are checked by the suites of their languages."""
    headers_ = {path.name: path.read_text() for path in (ROOT / "include").glob("*.h")}
    tables = ("| area |", "| binding |", "| PyTorch |")
    cells = [row.split("|")[2] for head in tables for row in page_rows(head)]
    for name in re.findall(r"`([^`]+)`", " ".join(cells)):
        if name.endswith(".h"):
            assert name in headers_
        elif name not in ("_retain", "_release"):
            for part in name.split("."):
                assert any(re.search(rf"\b{part}\b", text) for text in headers_.values()), name


EQUALS = {name: texts for names, texts in bindings.pytorch_rows(ROOT) for name in names}


def own_spellings(call, language):
    """How a language may spell the name of a call in PyTorch."""
    words = {call.replace(".", "_")}
    for space in (*bindings.SPACES, "special."):
        if call.startswith(space):
            words.add(call.removeprefix(space))
    if language == "c":
        return {f"tt_{word}" for word in words}
    if language == "rust":
        return words | {f"Tensor::{mark}{word}" for word in words for mark in ("", "r#")}
    return {"TT." + re.sub("_$", "!", word) for word in words}


@pytest.mark.parametrize("language", ["c", "rust", "julia"])
def test_every_operator_of_pytorch_has_its_name_or_its_equal(language):
    """Of those in PyTorch's recorded cases."""
    if language == "c":
        known = set(exports())
    else:
        known = {d.name for d in getattr(exposed, language)(ROOT, {}) if d.public}
    calls = {case["call"] for case in operators.public_cases(ROOT)}
    missing = [
        call
        for call in sorted(calls)
        if language not in EQUALS.get(call, {}) and not own_spellings(call, language) & known
    ]
    assert len(calls) > 600
    assert not missing, f"neither {language} nor bindings/pytorch_names.toml has {missing}"


def test_rows_of_pytorch_names_are_of_python_too():
    sys.path.insert(0, str(ROOT / "bindings/python"))
    tt = importlib.import_module("tt")
    assert len(EQUALS) > 50
    for name in EQUALS:
        assert operator.attrgetter(name)(tt), name


def page_rows(head):
    """The rows of the table of docs/bindings.md that begins so."""
    text = (ROOT / "docs/bindings.md").read_text()
    return text[text.index(head) :].partition("\n\n")[0].splitlines()[2:]


def test_names_of_python_resolve():
    sys.path.insert(0, str(ROOT / "bindings/python"))
    for name in sorted({row[HEAD.index("python")] for row in ROWS}):
        if name.startswith("- "):
            continue
        parts, found = name.split(".")[1:], importlib.import_module("tt")
        for part in parts:
            if not hasattr(found, part) and hasattr(found, "__path__"):
                importlib.import_module(f"{found.__name__}.{part}")
            assert hasattr(found, part), name
            found = getattr(found, part)


def test_names_of_rust_and_julia_are_defined():
    """By name alone: cargo and Julia compile the rest."""
    for language, folder, suffix in (
        ("rust", "bindings/rust/tt/src", "*.rs"),
        ("julia", "bindings/julia/src", "*.jl"),
    ):
        text = "".join(p.read_text() for p in (ROOT / folder).rglob(suffix))
        words = set(re.findall(r"(?:r#)?[\w!]+", text))
        for row in ROWS:
            name = row[HEAD.index(language)]
            assert name.startswith("- ") or re.split(r"[.:]+", name)[-1] in words, row


@pytest.mark.parametrize("language", ["python", "rust", "julia"])
def test_files_of_the_readme_exist(language):
    folder = ROOT / "bindings" / language
    paths = ["/" + p.relative_to(folder).as_posix() for p in folder.rglob("*")]
    text = (folder / "README.md").read_text().replace("\\", "")
    named = 0
    for cell in re.findall(r"^\| ([\w/.,* ]+) \|", text, re.M):
        for name in re.split(r", ", cell.replace("FAMILY", "arith").strip()):
            if re.search(r"[./]", name):
                named += 1
                assert fnmatch.filter(paths, "*/" + name.rstrip("/")), name
    assert named > 10
