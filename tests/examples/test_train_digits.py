"""train_digits as a user runs it: five seeds, options, outputs, and broken data files."""
import os
import pty
import re
import subprocess
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ["TT_BUILD"]) / "examples/train_digits"
DATA = ROOT / "examples/data/digits.csv"
# under a sanitizer an epoch takes ten times as long
SHORT = os.environ.get("TT_SANITIZED") == "1" and "TT_TEST_SHARE" in os.environ
EPOCHS = 1 if SHORT else 3


def run(*args, cwd=ROOT, data=DATA):
    command = [
        str(PROGRAM),
        "--svg",
        "/dev/null",
        *(["--data", str(data)] if data else []),
        *map(str, args),
    ]
    return subprocess.run(command, text=True, capture_output=True, cwd=cwd)


def accuracy(done):
    assert done.returncode == 0, done.stderr
    return float(re.fullmatch(r"test accuracy (\d+\.\d) %", done.stdout.splitlines()[-1]).group(1))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_learns_with_each_seed(seed):
    start = time.monotonic()
    assert accuracy(run("--seed", seed)) >= 97.5
    assert time.monotonic() - start < 60  # takes a second; far more means that something hangs


def test_same_seed_same_result_for_any_number_of_threads():
    one, again, two = (run("--seed", 3, "--epochs", EPOCHS, "--threads", n) for n in (1, 1, 2))
    losses = [re.findall(r"loss (\d\S+)", r.stdout) for r in (one, again, two)]
    assert len(losses[0]) == EPOCHS and losses[0] == losses[1] == losses[2]
    assert accuracy(one) == accuracy(two)
    other = run("--seed", 4, "--epochs", EPOCHS)
    assert re.findall(r"loss (\d\S+)", other.stdout) != losses[0]


def test_resumed_run_ends_as_an_uninterrupted_one(tmp_path):
    epochs = 2 * EPOCHS
    file, whole = tmp_path / "run.safetensors", run("--seed", 5, "--epochs", epochs)
    process = subprocess.Popen(
        [
            PROGRAM,
            "--seed",
            "5",
            "--epochs",
            str(epochs),
            "--svg",
            "/dev/null",
            "--data",
            DATA,
            "--checkpoint",
            file,
        ],
        stdout=subprocess.DEVNULL,
    )
    while not file.exists():
        time.sleep(0.002)
    process.kill()  # in the middle of some epoch
    process.wait()
    rest = run("--seed", 77, "--epochs", epochs, "--resume", file)
    losses = [re.findall(r"^epoch +\d+/\d +loss (\S+)", r.stdout, re.M) for r in (whole, rest)]
    assert (
        accuracy(rest) == accuracy(whole)
        and len(losses[1]) < epochs
        and losses[0][epochs - len(losses[1]) :] == losses[1]
    )
    confusion = [r.stdout[r.stdout.index("confusion") :] for r in (whole, rest)]
    assert confusion[0] == confusion[1]


def test_evaluates_the_model_of_a_checkpoint(tmp_path):
    file, logits = tmp_path / "run.safetensors", [tmp_path / n for n in ("a", "b")]
    trained = run("--seed", 5, "--epochs", 1, "--checkpoint", file, "--logits", logits[0])
    tested = run("--evaluate", file, "--logits", logits[1])
    assert accuracy(tested) == accuracy(trained) and not re.search("^epoch", tested.stdout, re.M)
    assert (
        logits[0].stat().st_size == 297 * 10 * 4
        and logits[0].read_bytes() == logits[1].read_bytes()
    )
    done = run("--evaluate", tmp_path / "absent")
    assert done.returncode == 1 and "IO" in done.stderr and "accuracy" not in done.stdout
    done = run("--evaluate", file, "--logits", tmp_path)
    assert done.returncode == 1 and "cannot be written" in done.stderr


def test_files_that_are_no_checkpoint(tmp_path):
    file = tmp_path / "bad"
    file.write_bytes(b"not a checkpoint")
    for path, why in ((file, "FORMAT"), (tmp_path / "absent", "IO"), (tmp_path, "IO")):
        done = run("--resume", path)
        assert done.returncode == 1 and why in done.stderr and "accuracy" not in done.stdout


def test_devices():
    assert accuracy(run("--device", "cpu", "--epochs", 1)) > 50
    done = run("--device", "tpu")
    assert done.returncode == 1 and 'there is no device "tpu"' in done.stderr


def test_epochs_and_learning_rate():
    slow = run("--epochs", 2, "--lr", "1e-6", "--seed", 1)
    assert len(re.findall(r"^epoch", slow.stdout, re.M)) == 2
    assert accuracy(slow) < 50  # such a rate learns nothing


def test_confusion_matrix_counts_every_test_row():
    done = run("--epochs", 1)
    lines = done.stdout[done.stdout.index("confusion matrix") :].splitlines()
    counts = [
        [0 if cell == "." else int(cell) for cell in line.split()[1:]] for line in lines[2:12]
    ]
    assert [len(row) for row in counts] == [10] * 10 and sum(map(sum, counts)) == 297
    right = sum(counts[i][i] for i in range(10))
    assert accuracy(done) == pytest.approx(100 * right / 297, abs=0.051)


def test_loss_curve_is_svg(tmp_path):
    path = tmp_path / "curve.svg"
    accuracy(run("--epochs", 1 + EPOCHS, "--svg", path))
    points = (
        ET.parse(path).getroot().find("{http://www.w3.org/2000/svg}polyline").get("points").split()
    )
    assert len(points) == 1 + EPOCHS
    heights = [float(p.split(",")[1]) for p in points]
    assert heights == sorted(heights)  # the loss falls: y grows downwards


def test_bar_on_a_terminal():
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "--epochs", "3", "--svg", "/dev/null", "--data", DATA], stdout=writer
    )
    os.close(writer)
    text = b""
    try:
        while part := os.read(reader, 65536):
            text += part
    except OSError:
        pass  # the other end is closed
    assert process.wait() == 0
    bars = re.findall(
        rb"\repoch +(\d)/3 \[([#-]{30})\] loss \d+\.\d{4}  \d+ samples/s  ETA \d+\.\d s", text
    )
    assert [n for n, _ in bars] == [b"1", b"2", b"3"] and bars[-1][1] == b"#" * 30


ROW = DATA.read_text().splitlines()[0]


@pytest.mark.parametrize(
    "text, place, why",
    [
        ("", "1:1", "empty"),
        ("\n".join([ROW] * 3) + "\n", "4:1", "more than 1500"),
        (f"{ROW}\n{ROW[:20]}", "2:21", "ends"),
        (
            f"{ROW}\n{ROW.rsplit(',', 1)[0]}\n{ROW}",
            f"2:{len(ROW.rsplit(',', 1)[0]) + 1}",
            "line ends",
        ),
        (f"{ROW}\n{ROW}\n0,two,{ROW}", "3:3", "not a number"),
        (f"17,{ROW}", "1:1", "17 is out of range"),
        (f"-1,{ROW}", "1:1", "not a number"),
        (f"99999999999999999999,{ROW}", "1:1", "out of range"),
        (f"{ROW},5\n", f"1:{len(ROW) + 1}", "more than 65"),
        (f"{ROW}\n{ROW}\0\n", f"2:{len(ROW) + 1}", "zero byte"),
        ("\x7fELF\x02\x01\x01", "1:1", "not a number"),
    ],
)
def test_broken_file_is_named_with_line_and_column(tmp_path, text, place, why):
    path = tmp_path / "digits.csv"
    path.write_text(text)
    done = run(data=path)
    assert done.returncode == 1 and "accuracy" not in done.stdout
    assert f"{path}:{place}: " in done.stderr and why in done.stderr


@pytest.mark.parametrize(
    "args, why",
    [
        (("--epochs", "many"), "not a number: many"),
        (("--epochs", "0"), "must be positive"),
        (("--lr", "-1"), "must be positive"),
        (("--lr", "nan"), "must be positive"),
        (("--seed",), "no value for --seed"),
        (("--rate", "1"), "unknown option --rate"),
        (("--rate",), "unknown option --rate"),
        (("--threads", "99999999999"), "must be"),
    ],
)
def test_wrong_options_are_explained(args, why):
    done = run(*args)
    assert done.returncode == 2 and why in done.stderr and "usage:" in done.stderr


def test_a_directory_is_no_data_file(tmp_path):
    done = run(data=tmp_path)
    assert done.returncode == 1 and f"{tmp_path}: cannot be read" in done.stderr


def test_a_missing_data_file(tmp_path):
    done = run(data=tmp_path / "no.csv")
    assert done.returncode == 1 and "no.csv: No such file" in done.stderr
