"""char_lm: the loss falls, text is generated, a resumed run equals an uninterrupted one, and wrong
input is explained."""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ["TT_BUILD"]) / "examples/char_lm"
STEPS = 30 if os.environ.get("TT_SANITIZED") == "1" else 200
SMALL = (
    "--batch",
    "8",
    "--context",
    "32",
    "--width",
    "32",
    "--layers",
    "2",
    "--heads",
    "2",
    "--sample",
    "40",
)


def run(*args):
    return subprocess.run([str(PROGRAM), *map(str, args)], capture_output=True, cwd=ROOT)


def losses(done):
    assert done.returncode == 0, done.stderr
    return [float(x) for x in re.findall(rb"^step +\d+/\d+  loss (\S+)", done.stdout, re.M)]


@pytest.mark.long
def test_learns_and_writes():
    done = run("--steps", 700, *SMALL)
    found = losses(done)
    # The text is the docs, with which the mean is 2.7; a batch of eight varies by 0.1.
    assert found[0] > 4 and sum(found[-10:]) / 10 < 2.85
    sample = done.stdout.split(b"--- sample ---\n")[1]
    known = set(
        b"".join(
            (ROOT / f).read_bytes()
            for f in (
                "README.md",
                "CHANGELOG.md",
                "docs/architecture.md",
                "docs/contributing.md",
                "docs/style.md",
                "src/README.md",
                "src/ops/README.md",
                "src/ops/decl/README.md",
            )
        )
    )
    assert len(sample) == 41 and set(sample) <= known | {10}


@pytest.mark.long
def test_learns_a_short_text_by_heart(tmp_path):
    text = tmp_path / "song.txt"
    text.write_text("row row row your boat gently down the stream. " * 20)
    done = run("--text", text, "--steps", 400, *SMALL, "--temperature", "0.2")
    assert losses(done)[-1] < 0.3 and b"gently down the" in done.stdout


def test_resumed_run_ends_as_an_uninterrupted_one(tmp_path):
    file = tmp_path / "run.safetensors"
    whole = run("--steps", STEPS, *SMALL, "--checkpoint", tmp_path / "whole")
    first = run("--steps", STEPS, *SMALL, "--checkpoint", file)
    assert losses(first) == losses(whole)
    # The checkpoint at the end: going on from it for 0 steps writes the same text.
    again = run("--steps", STEPS, *SMALL, "--resume", file, "--seed", 9)
    assert (
        losses(again) == []
        and again.stdout.split(b"sample ---")[1] == whole.stdout.split(b"sample ---")[1]
    )


def test_writes_the_same_with_a_cache(tmp_path):
    file = tmp_path / "run.safetensors"
    run("--steps", 30, *SMALL, "--checkpoint", file)
    resumed = ("--steps", 30, *SMALL, "--resume", file, "--temperature", "0.01")
    plain = run(*resumed, "--sample", 31)
    cached = run(*resumed, "--sample", 31, "--cache", 1)
    text = plain.stdout.split(b"sample ---\n")[1]
    written, _, replayed = cached.stdout.split(b"sample ---\n")[1].rstrip().rpartition(b"\n")
    assert written == text.removesuffix(b"\n") and replayed == b"30 steps replayed"
    longer = run(*resumed, "--sample", 100, "--cache", 1)  # more than the context
    assert longer.returncode == 0, longer.stderr
    assert longer.stdout.split(b"sample ---\n")[1].startswith(written[:30])


def test_packed_weights_keep_the_loss(tmp_path):
    file = tmp_path / "run.safetensors"
    run("--steps", 30, *SMALL, "--checkpoint", file)
    for name, most in (("q8_0", 0.003), ("q4_0", 0.1)):
        done = run("--steps", 30, *SMALL, "--resume", file, "--weights", name, "--cache", 1)
        found = re.search(rb"float32 weights: (\S+), with (\S+): (\S+)", done.stdout)
        assert found and found[2].decode() == name, done.stderr
        assert 2 < float(found[1]) and abs(float(found[3]) - float(found[1])) < most
        assert done.stdout.endswith(b" steps replayed\n")


@pytest.mark.parametrize(
    "args, code, why",
    [
        (("--text", "/nowhere"), 1, "No such file"),
        (("--text", "/tmp"), 1, "directory"),
        (("--context", "1000000"), 1, "too few"),
        (("--heads", "5"), 1, "multiple of num_heads"),
        (("--steps", "0"), 2, "must be 1"),
        (("--lr", "x"), 2, "not a number"),
        (("--cache", "2"), 2, "must be 0 or 1"),
        (("--weights", "q2_k"), 2, "must be q8_0 or q4_0"),
        (("--weights", "q8_0", "--width", "40"), 2, "whole blocks"),
        (("--what", "1"), 2, "unknown option"),
    ],
)
def test_wrong_input_is_explained(args, code, why):
    done = run(*args)
    assert done.returncode == code and why in done.stderr.decode()
