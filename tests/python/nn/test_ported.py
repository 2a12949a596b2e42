"""The ported scripts follow PyTorch's losses. `python test_ported.py`, with PyTorch, records them:
ported.json."""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "ported.json"
SCRIPTS = HERE.parents[2] / "examples/python/ported"
NAMES = ["mlp", "cnn", "char_lm", "vae", "custom_function"]
# scripts by others' designs -> steps that are compared
SHORT = {
    "char_rnn": 20,
    "char_transformer": 20,
    "cifar_zoo": 10,
    "dcgan": 10,
    "digits_cnn": 20,
    "gat": 20,
    "gcn": 20,
    "gpt": 20,
    "reinforce": 10,
    "siamese": 20,
    "sine_lstm": 8,
    "super_resolution": 20,
    "word_lm": 20,
}


def run(name, port, steps=50):
    """(losses, the last line) of a script."""
    env = {**os.environ, "PORT": port}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / f"{name}.py"), str(steps)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [float(line.split()[3]) for line in lines if line.startswith("step ")], lines[-1]


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        short = "short" in metafunc.function.__name__
        metafunc.parametrize("name", SHORT if short else NAMES)


def test_losses_are_pytorchs(name):
    want = json.loads(RECORDED.read_text())[name]
    losses, last = run(name, "tt")
    assert (
        len(losses) == 50
        and losses[-1] < 0.8 * losses[0]
        and (last.startswith("step ") or last == want["last"])
    )
    assert all(abs(a - b) <= 1e-4 * abs(b) for a, b in zip(losses, want["losses"]))


def test_short_runs_follow_pytorchs(name):
    want = json.loads(RECORDED.read_text())[name]
    losses, _ = run(name, "tt", SHORT[name])
    assert len(losses) == SHORT[name] == len(want["losses"])
    assert all(abs(a - b) <= 1e-3 * abs(b) for a, b in zip(losses, want["losses"]))


if __name__ == "__main__":
    found = {}
    for name in NAMES:
        losses, last = run(name, "torch")
        found[name] = {"losses": losses, "last": last}
    for name, steps in SHORT.items():
        found[name] = {"losses": run(name, "torch", steps)[0]}
    RECORDED.write_text(json.dumps(found, indent=0) + "\n")
