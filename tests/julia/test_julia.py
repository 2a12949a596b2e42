"""What surrounds the Julia binding's own tests (bindings/julia/test): its examples, one of them
beside the C one."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TT_BUILD"])
C_PROGRAM = BUILD / "examples/train_digits"
DATA = ROOT / "examples/data/digits.csv"


def julia(*args, data=DATA, compiled=True):
    command = [
        os.environ["TT_JULIA"],
        "-O0",
        f"--compile={'yes' if compiled else 'min'}",
        "--startup-file=no",
        ROOT / "examples/julia/train_digits.jl",
        "--data",
        data,
        *args,
    ]
    return subprocess.run([str(c) for c in command], text=True, capture_output=True)


def in_c(*args):
    return subprocess.run(
        [str(c) for c in (C_PROGRAM, "--svg", "/dev/null", "--data", DATA, *args)],
        text=True,
        capture_output=True,
    )


def accuracy(done):
    assert done.returncode == 0, done.stderr
    return float(re.fullmatch(r"test accuracy (\d+\.\d) %", done.stdout.splitlines()[-1]).group(1))


def test_the_example_learns_and_agrees_with_c_bit_by_bit(tmp_path):
    trained = julia("--seed", 2, "--checkpoint", tmp_path / "run", "--logits", tmp_path / "trained")
    assert accuracy(trained) >= 97.5 and re.search(
        r"[\r\n]epoch +30/30 \[#{30}\] loss 0\.\d{4}  \d+ samples/s  ETA 0\.0 s", trained.stdout
    )
    assert accuracy(in_c("--evaluate", tmp_path / "run", "--logits", tmp_path / "c")) == accuracy(
        trained
    )
    assert (tmp_path / "c").read_bytes() == (tmp_path / "trained").read_bytes() and (
        tmp_path / "c"
    ).stat().st_size == 297 * 10 * 4


def test_a_model_of_c_is_evaluated_bit_equal(tmp_path):
    accuracy(
        in_c(
            "--seed",
            4,
            "--epochs",
            3,
            "--checkpoint",
            tmp_path / "run",
            "--logits",
            tmp_path / "trained",
        )
    )
    accuracy(julia("--evaluate", tmp_path / "run", "--logits", tmp_path / "julia"))
    assert (tmp_path / "julia").read_bytes() == (tmp_path / "trained").read_bytes()


def test_a_resumed_run_ends_as_an_uninterrupted_one(tmp_path):
    def losses(done):
        return re.findall(r"epoch +(\d+)/4 .*? loss (\S+)", done.stdout)

    whole = julia(
        "--seed", 5, "--epochs", 4, "--checkpoint", tmp_path / "run", "--logits", tmp_path / "whole"
    )
    part = in_c(
        "--seed",
        5,
        "--epochs",
        4,
        "--checkpoint",
        tmp_path / "c",
        "--logits",
        tmp_path / "c_logits",
    )
    assert accuracy(part) == accuracy(whole)  # the two programs train alike
    again = julia(
        "--seed", 77, "--epochs", 4, "--resume", tmp_path / "run", "--logits", tmp_path / "rest"
    )
    assert accuracy(again) == accuracy(whole) and not losses(again) and len(losses(whole)) == 4
    assert (
        (tmp_path / "whole").read_bytes()
        == (tmp_path / "rest").read_bytes()
        == (tmp_path / "c_logits").read_bytes()
    )


@pytest.mark.parametrize(
    "args, why",
    [
        (("--rate", "1"), "unknown option --rate"),
        (("--seed",), "no value for --seed"),
        (("--resume", "/nowhere"), "/nowhere"),
    ],
)
def test_the_example_explains_what_is_wrong(args, why):
    done = julia(*args, compiled="--resume" in args)  # which reads the data first
    assert done.returncode == 1 and why in done.stderr and done.stderr.startswith("train_digits: ")


def test_a_broken_file_is_named_with_its_line(tmp_path):
    (tmp_path / "digits.csv").write_text("1,2,3\n")
    done = julia(data=tmp_path / "digits.csv", compiled=False)
    assert done.returncode == 1 and f"{tmp_path}/digits.csv:1: not 64 pixels" in done.stderr


def test_the_cnn_learns_and_draws():
    program = ROOT / "examples/julia/cnn.jl"
    done = subprocess.run(
        [os.environ["TT_JULIA"], "-O0", "--startup-file=no", program, "5"],
        text=True,
        capture_output=True,
    )
    assert accuracy(done) > 80
    plot = re.findall("^ *([0-9.]+) │[\u2800-\u28ff]{60}$", done.stdout, re.M)
    assert len(plot) == 2 and float(plot[0]) > 1.5 > 0.5 > float(plot[1])
    assert len(re.findall("^ +[0-9] │█", done.stdout, re.M)) >= 9


@pytest.mark.skipif("TT_TEST_SHARE" in os.environ, reason="takes 6 s, of which Julia compiles 5")
def test_the_player_learns_to_balance_a_pole():
    program = ROOT / "examples/julia/cart_pole.jl"
    done = subprocess.run(
        [os.environ["TT_JULIA"], "-O0", "--startup-file=no", program, "12"],
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    games = [int(n) for n in re.findall(r"games of +(\d+) steps █", done.stdout)]
    assert len(games) == 12 and games[0] < 40 and max(games[8:]) > 100
    assert int(re.search(r"the last game took (\d+) steps", done.stdout).group(1)) > 100


@pytest.mark.skipif("TT_TEST_SHARE" in os.environ, reason="takes 6 s; Rust's form runs in CI")
@pytest.mark.skipif(not (BUILD / "libtt_gloo.so").exists(), reason="no libtt_gloo in this build")
def test_two_processes_train_one_model():
    launcher = [sys.executable, "-m", "tt.distributed.run", "--no-python", "--nproc-per-node=2"]
    program = ROOT / "examples/julia/train_ddp.jl"
    done = subprocess.run(
        [*launcher, os.environ["TT_JULIA"], "-O0", "--startup-file=no", program],
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "bindings/python")},
    )
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"2 processes: test accuracy (\S+) %", done.stdout).group(1)) > 80
