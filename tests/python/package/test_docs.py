"""The pages are right about Python: the blocks of docs/python.md run in order in one program, and
print what the page says; the names of docs/bindings.md are there; what docs/pytorch-users.md calls
missing is missing."""
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.M | re.S)


@pytest.fixture
def undone(monkeypatch):
    """as_torch() renames tt, finds modules of torch and adds names to sys.modules: the end of the
    test takes them back."""
    import tt
    from tt._types import Named

    monkeypatch.setattr(Named, "library", "tt")
    monkeypatch.setattr(tt, "__name__", "tt")
    monkeypatch.setattr(tt, "torch", None, raising=False)
    for module in (tt, tt.version):
        monkeypatch.setattr(module, "__version__", module.__version__)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("torch", "functorch"):
            del sys.modules[name]


def test_the_quickstart_prints_what_it_says(tmp_path, monkeypatch, undone, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs/python.md").read_text())
    assert len(blocks) >= 10
    names = {"__name__": "quickstart"}
    for source, expected in blocks:
        exec(compile(source, "docs/python.md", "exec"), names)
        assert capsys.readouterr().out == expected, source


def test_the_quickstart_leaves_tt_as_it_was():
    import tt

    assert (tt.__name__, repr(tt.float32)) == ("tt", "tt.float32") and not hasattr(tt, "torch")
    from tt import _compressed  # found by tt's name, as modules that tt loads late

    assert _compressed.__name__ == "tt._compressed" and "torch" not in sys.modules


def missing_of_the_page():
    text = (ROOT / "docs/pytorch-users.md").read_text()
    return set(re.findall(r"`([\w.]+)`", text.partition("## What is missing")[2]))


@pytest.mark.parametrize("name", sorted(missing_of_the_page()))
def test_what_the_page_calls_missing_is_missing(name):
    import tt

    found = tt
    for part in name.removeprefix("torch.").split("."):
        found = getattr(found, part, None)
    assert found is None


def python_cells():
    """The cells of the column "Python" in the first table of docs/bindings.md."""
    text = (ROOT / "docs/bindings.md").read_text()
    table = text[text.index("| area |") :].partition("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    return [(row[0], row[head.index("Python")]) for row in rows]


@pytest.mark.parametrize("area, cell", python_cells(), ids=lambda text: text[:20])
def test_python_names_of_the_bindings_resolve(area, cell):
    import tt

    model, x = tt.nn.Linear(2, 1), tt.ones(2, 2)
    opt = tt.optim.SGD(model.parameters())
    names = {name: getattr(tt, name) for name in tt.__all__}
    names |= {"model": model, "params": list(model.parameters()), "opt": opt, "x": x}
    names |= {"s": tt.optim.lr_scheduler.StepLR(opt, 30), "loss": model(x).sum(), "f": print}
    names |= {"out": tt.ones(2, 2), "data": [1.0], "mask": tt.tensor([True, False])}
    threads = tt.get_num_threads()
    try:
        for source in re.findall(r"`([^`]+)`", cell):
            eval(source, names)
    finally:  # what some of them switch
        tt.set_num_threads(threads)
        tt.autograd.set_detect_anomaly(False)
