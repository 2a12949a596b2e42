"""tt.safetensors: round trips, refused files, and files that other readers accept."""
import gc
import json
import struct

import numpy as np
import pytest

import tt
from tt import errors
from tt.safetensors import load_file, safe_open, save_file


def test_round_trip(tmp_path):
    path = tmp_path / "model.safetensors"
    weight = tt.arange(6, dtype=tt.float32).view(2, 3).t()
    save_file(
        {"weight": weight, "bias": tt.tensor([1.5, 2], dtype=tt.float16), "step": tt.tensor(7)},
        path,
        {"format": "tt", "é": "ü"},
    )
    back = load_file(path)
    assert list(back) == ["weight", "bias", "step"] and back["step"].item() == 7
    assert back["weight"].tolist() == weight.tolist() and back["bias"].dtype is tt.float16
    with safe_open(path) as f:
        assert f.metadata() == {"format": "tt", "é": "ü"} and f.keys() == list(back)
        assert f.get_tensor("bias").tolist() == [1.5, 2]
        with pytest.raises(IndexError, match="nothing"):
            f.get_tensor("nothing")


def test_the_file_follows_the_format(tmp_path):
    path = tmp_path / "a"
    save_file({"x": tt.tensor([1.0, -2.0])}, path)
    raw = path.read_bytes()
    [n] = struct.unpack("<Q", raw[:8])
    assert json.loads(raw[8 : 8 + n]) == {
        "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    }
    assert n % 8 == 0 and np.frombuffer(raw[8 + n :], "<f4").tolist() == [1, -2]


def test_errors(tmp_path):
    with pytest.raises(OSError):
        load_file(tmp_path / "none")
    (tmp_path / "bad").write_bytes(struct.pack("<Q", 3) + b"{a}")
    with pytest.raises(errors.TtError, match="byte 9"):
        load_file(tmp_path / "bad")
    with pytest.raises(TypeError):
        save_file({"x": [1, 2]}, tmp_path / "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad"]


def test_open_files_are_closed(tmp_path):
    save_file({"x": tt.ones(2)}, tmp_path / "x")
    for _ in range(2000):  # more than a process may have open
        f = safe_open(tmp_path / "x")
        assert f.get_tensor("x").tolist() == [1, 1]
    del f
    gc.collect()
