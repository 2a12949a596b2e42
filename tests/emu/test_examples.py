"""Examples with --device cuda on the emulated device compute what they compute on the CPU, but for
rounding."""
import os
import re
import subprocess
from array import array
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TT_BUILD"])
ON_EMULATION = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "tests/emu/as_cuda")}


def run(example, device, *arguments):
    command = [BUILD / "examples" / example, "--device", device, *arguments]
    return subprocess.run(command, env=ON_EMULATION, check=True, capture_output=True, cwd=ROOT)


def logits(folder, device):
    """The learning rate is small: Adam makes steps of that size from gradients that are rounding
    errors."""
    path = folder / f"{device}.bin"
    data = ROOT / "examples/data/digits.csv"
    run("train_digits", device, "--epochs", "1", "--lr", "1e-5", "--svg", folder / "loss.svg",
        "--logits", path, "--data", data)  # fmt: skip
    return array("f", path.read_bytes())


def test_train_digits(tmp_path):
    want = logits(tmp_path, "cpu")
    got = logits(tmp_path, "cuda")
    assert len(got) == len(want) > 0
    largest = max(abs(v) for v in want)
    assert max(abs(a - b) for a, b in zip(got, want)) <= 1e-3 * largest


def losses_and_text(device):
    sizes = "--batch 2 --context 8 --width 16 --layers 1 --heads 2 --steps 3".split()
    out = run("char_lm", device, *sizes, "--sample", "8", "--cache", "1").stdout
    losses = [float(x) for x in re.findall(rb"loss (\S+)", out)]
    return losses, out.split(b"--- sample ---\n")[1].split(b"\n")[0]


def test_char_lm():
    losses, text = losses_and_text("cpu")
    got_losses, got_text = losses_and_text("cuda")
    assert len(losses) == 3
    assert got_losses == pytest.approx(losses, rel=1e-3)
    assert got_text == text
