"""The example writes a model, with or without a checkpoint."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*args, **options):
    return subprocess.run(
        [sys.executable, ROOT / "examples/python/export_onnx.py", *args],
        text=True,
        capture_output=True,
        **options,
    )


def test_writes_a_model(tmp_path):
    done = run("net.onnx", "--batch", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    size = int(re.search(r"wrote net.onnx: (\d+) bytes", done.stdout).group(1))
    assert (tmp_path / "net.onnx").stat().st_size == size > 4000
    assert "not installed" in done.stdout or "largest difference" in done.stdout


def test_refuses_a_missing_checkpoint(tmp_path):
    done = run("--checkpoint", "missing.pt", cwd=tmp_path)
    assert done.returncode == 1 and "missing.pt" in done.stderr
    assert done.stderr.startswith("export_onnx: ")
