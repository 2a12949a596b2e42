"""firmware_model: 8-bit integers lose at most 0.3 points of the digits that float32 reads."""
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TT_BUILD"]) / "examples"


def output_of(*command):
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_integers_read_as_many_digits(tmp_path):
    checkpoint = tmp_path / "digits.safetensors"
    output_of(BUILD / "train_digits", "--checkpoint", checkpoint, "--svg", os.devnull)
    said = output_of(BUILD / "firmware_model", checkpoint, tmp_path)
    numbers = re.fullmatch(r"right of (\d+): float32 (\d+), int8 (\d+)\n", said)
    images, in_float, in_int8 = map(int, numbers.groups())
    assert in_float >= 0.975 * images
    assert 100 * (in_float - in_int8) / images <= 0.3
    assert (tmp_path / "digits.c").stat().st_size > 0
