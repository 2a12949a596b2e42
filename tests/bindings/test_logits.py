"""A checkpoint of the C example's CNN, evaluated by the example of each language, gives bit-equal
logits."""
import re

import pytest

from languages import FOLDERS, LANGUAGES, ROOT, example

DATA = ROOT / "examples/data/digits.csv"
EXAMPLES = sorted(
    FOLDERS[p.suffix[1:]] for p in ROOT.glob("examples/*/train_digits.*") if p.suffix[1:] in FOLDERS
)
COMPARED = [language for language in EXAMPLES if language in LANGUAGES]


def digits(language, *args):
    quiet = ["--svg", "/dev/null"] if language == "c" else []
    text = example(language, "train_digits", "--data", DATA, *quiet, *args)
    return float(re.search(r"test accuracy (\d+\.\d) %", text).group(1))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    assert (
        digits("c", "--seed", 4, "--checkpoint", folder / "run", "--logits", folder / "trained")
        >= 97.5
    )
    return folder


def test_every_example_takes_part():
    """Where the language's tools are; CMake tells which languages these are."""
    known = {"c", "cpp", "python", "rust", "julia"}
    assert {p.parent.name for p in ROOT.glob("examples/*/train_digits.*")} <= known
    assert {"c", "python", "rust", "julia"} <= set(EXAMPLES) and set(COMPARED) == set(
        EXAMPLES
    ) & set(LANGUAGES) >= {"c"}
    print("compared:", *COMPARED)


@pytest.mark.parametrize("language", COMPARED)
def test_logits_are_bit_equal(language, checkpoint):
    digits(language, "--evaluate", checkpoint / "run", "--logits", checkpoint / language)
    found = (checkpoint / language).read_bytes()
    assert len(found) == 297 * 10 * 4 and found == (checkpoint / "trained").read_bytes()


def test_a_module_of_python_takes_the_state_of_c(checkpoint):
    """The same without an example: tt.load into a Python Module."""
    import tt
    from tt import nn

    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32 * 2 * 2, 10),
    ).eval()
    state = tt.load(checkpoint / "run")
    model.load_state_dict(
        {name[len("module.") :]: t for name, t in state.items() if name.startswith("module.")}
    )
    rows = [[int(x) / 16 for x in line.split(",")[:64]] for line in DATA.read_text().splitlines()]
    tt.manual_seed(1234)  # as the programs split the rows
    with tt.no_grad():
        logits = model(tt.tensor(rows)[tt.randperm(len(rows))[1500:]].reshape(-1, 1, 8, 8))
    assert logits.numpy().tobytes() == (checkpoint / "trained").read_bytes()
