"""One checkpoint of the C program's CNN, evaluated by the example of each language: the same bits."""
import re

import pytest

from languages import FOLDERS, LANGUAGES, ROOT, example

DATA = ROOT / "examples/data/digits.csv"
EXAMPLES = sorted(FOLDERS[p.suffix[1:]] for p in ROOT.glob("examples/*/train_digits.*") if p.suffix[1:] in FOLDERS)
COMPARED = [language for language in EXAMPLES if language in LANGUAGES]


def digits(language, *args):
    quiet = ["--svg", "/dev/null"] if language == "c" else []
    text = example(language, "train_digits", "--data", DATA, *quiet, *args)
    return float(re.search(r"test accuracy (\d+\.\d) %", text).group(1))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    assert digits("c", "--seed", 4, "--checkpoint", folder / "run", "--logits", folder / "trained") >= 97.5
    return folder


def test_every_example_takes_part():
    """Where the language's tools are; CMake tells which languages these are."""
    known = {"c", "cpp", "python", "rust", "julia"}
    assert {p.parent.name for p in ROOT.glob("examples/*/train_digits.*")} <= known
    assert {"c", "rust", "julia"} <= set(EXAMPLES) and set(COMPARED) == set(EXAMPLES) & set(LANGUAGES) >= {"c"}
    print("compared:", *COMPARED)


@pytest.mark.parametrize("language", COMPARED)
def test_logits_are_bit_equal(language, checkpoint):
    digits(language, "--evaluate", checkpoint / "run", "--logits", checkpoint / language)
    found = (checkpoint / language).read_bytes()
    assert len(found) == 297 * 10 * 4 and found == (checkpoint / "trained").read_bytes()
