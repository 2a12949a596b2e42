"""train_digits --device cuda on the emulated device: the logits of the CPU but for rounding. The
learning rate is small: Adam makes steps of that size from gradients that are rounding errors."""
import os
import subprocess
from array import array
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TT_BUILD"])


def logits(folder, device):
    path = folder / f"{device}.bin"
    subprocess.run(
        [
            BUILD / "examples/train_digits",
            "--device",
            device,
            "--epochs",
            "1",
            "--lr",
            "1e-5",
            "--svg",
        ]
        + [folder / "loss.svg", "--logits", path, "--data", ROOT / "examples/data/digits.csv"],
        env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "tests/emu/as_cuda")},
        check=True,
        capture_output=True,
    )
    return array("f", path.read_bytes())


def test_training_step_by_step(tmp_path):
    want = logits(tmp_path, "cpu")
    got = logits(tmp_path, "cuda")
    assert len(got) == len(want) > 0
    largest = max(abs(v) for v in want)
    assert max(abs(a - b) for a, b in zip(got, want)) <= 1e-3 * largest
