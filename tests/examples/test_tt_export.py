"""tt-export: a saved graph becomes C source that computes the same, or an ONNX model."""
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ["TT_BUILD"]) / "examples/tt-export"
sys.path.insert(0, str(ROOT / "bindings/python"))
tt = pytest.importorskip("tt")


def run(*args, **options):
    return subprocess.run([str(PROGRAM), *args], text=True, capture_output=True, **options)


@pytest.fixture
def saved(tmp_path):
    from tt import nn

    tt.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), tt.randn(1, 3)
    tt.fx.capture(model, x).graph.handle.save(tmp_path / "net.ttg")
    return model, x


def test_c(saved, tmp_path):
    model, x = saved
    done = run("net.ttg", "-o", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    library = tmp_path / "net.so"
    subprocess.run(
        ["cc", "-std=c99", "-shared", "-fPIC", "-o", library, tmp_path / "net.c", "-lm"], check=True
    )
    given, got = (ctypes.c_float * 3)(*x.flatten().tolist()), (ctypes.c_float * 2)()
    ctypes.CDLL(str(library)).net(given, got)
    for a, b in zip(got, model(x).flatten().tolist()):
        assert abs(a - b) < 1e-6


def test_int8_and_a_blob(saved, tmp_path):
    model, x = saved
    tt.safetensors.save_file({"x": x}, tmp_path / "samples.safetensors")
    done = run("net.ttg", "--blob", "--int8", "samples.safetensors", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    source = (tmp_path / "net.c").read_text()
    assert "quantized_linear_uint8(" in source and "static const float w" not in source
    library = tmp_path / "net.so"
    subprocess.run(
        ["cc", "-std=c99", "-shared", "-fPIC", "-o", library, tmp_path / "net.c", "-lm"], check=True
    )
    blob = ctypes.create_string_buffer((tmp_path / "net.bin").read_bytes())
    given, got = (ctypes.c_float * 3)(*x.flatten().tolist()), (ctypes.c_float * 2)()
    ctypes.CDLL(str(library)).net(blob, given, got)
    for a, b in zip(got, model(x).flatten().tolist()):
        assert abs(a - b) < 0.03


def test_onnx_and_a_name(saved, tmp_path):
    done = run("net.ttg", "--onnx", "--name", "other", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"MatMul" in (tmp_path / "other.onnx").read_bytes()


def test_refuses(tmp_path):
    assert run().returncode == 2 and "tt-export" in run("--help").stdout
    done = run("missing.ttg", cwd=tmp_path)
    assert done.returncode == 1 and "missing.ttg" in done.stderr
    (tmp_path / "bad.ttg").write_bytes(b"\0" * 100)
    assert "tt-export: " in run("bad.ttg", cwd=tmp_path).stderr


def test_no_folder(saved, tmp_path):
    for form in [], ["--blob"], ["--onnx"]:
        done = run("net.ttg", "-o", "none", *form, cwd=tmp_path)
        assert done.returncode == 1
        assert '"none/net.' in done.stderr and "its folder does not exist" in done.stderr
