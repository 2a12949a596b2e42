"""The wheel of bindings/python: complete, with the library inside, and it works where the source
tree is not."""
import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tt import _lib

BINDING = Path(__file__).resolve().parents[3] / "bindings/python"
USE = "import tt; from tt import _lib, nn, optim; print(_lib.path, (tt.ones(2) + nn.functional.relu(tt.ones(2))).tolist())"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    code = f"import build_wheel; print(build_wheel.build_wheel({str(folder)!r}))"
    env = dict(os.environ, TT_LIBRARY=_lib.path, PYTHONPATH=str(BINDING))
    return (
        folder
        / subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        ).stdout.strip()
    )


def clean_environment(**more):
    return {
        **{k: v for k, v in os.environ.items() if k not in ("TT_LIBRARY", "PYTHONPATH")},
        **more,
    }


def test_the_wheel_works_alone(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as z:
        z.extractall(tmp_path)
        record = [
            line.split(",") for line in z.read("tt-0.1.0.dist-info/RECORD").decode().splitlines()
        ]
        assert sorted(r[0] for r in record) == sorted(z.namelist()) and {
            "tt/py.typed",
            "tt/_ops/methods.pyi",
            "tt/nn/_layers.py",
        } <= set(z.namelist())
        for name, digest, size in record[:-1]:
            data = z.read(name)
            assert digest == "sha256=" + base64.urlsafe_b64encode(
                hashlib.sha256(data).digest()
            ).rstrip(b"=").decode() and int(size) == len(data)
    found = subprocess.run(
        [sys.executable, "-c", USE],
        env=clean_environment(PYTHONPATH=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip() == f"{tmp_path}/tt/libtt.so [2.0, 2.0]", found.stderr


def test_pip_installs_it(wheel, tmp_path):
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode:
        pytest.skip("pip is not installed")
    subprocess.run(
        [*pip, "install", "-q", "--no-index", "--no-deps", "--target", str(tmp_path), str(wheel)],
        env=clean_environment(),
        check=True,
        capture_output=True,
    )
    found = subprocess.run(
        [sys.executable, "-c", USE],
        env=clean_environment(PYTHONPATH=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "[2.0, 2.0]" in found.stdout, found.stderr
