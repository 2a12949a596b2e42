"""The blocks of docs/python.md run in order in one program, and print what the page says."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.M | re.S)


def test_the_quickstart_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs/python.md").read_text())
    assert len(blocks) >= 10
    names = {"__name__": "quickstart"}
    for source, expected in blocks:
        exec(compile(source, "docs/python.md", "exec"), names)
        assert capsys.readouterr().out == expected, source


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
