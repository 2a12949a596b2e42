"""Build backend of pip: a wheel with the package and libtt.so inside. Needs nothing but Python, and
cmake where the library is not built yet.

The library is that of TT_LIBRARY, else of the source tree's build/, else cmake builds it there.
"""
import base64
import hashlib
import os
import subprocess
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
NAME, VERSION = "tt", "0.1.0"
SUMMARY = "tensors, gradients and neural networks over libtt, by ctypes"
METADATA = f"""\
Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: {SUMMARY}
Requires-Python: >=3.9
"""


def tag():
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def library():
    path = Path(os.environ.get("TT_LIBRARY") or TREE / "build/libtt.so")
    if not path.exists() and "TT_LIBRARY" not in os.environ:
        subprocess.run(["cmake", "-S", TREE, "-B", TREE / "build", "-DTT_TESTS=OFF"], check=True)
        subprocess.run(
            ["cmake", "--build", TREE / "build", "--target", "tt", "-j", str(os.cpu_count() or 1)],
            check=True,
        )
    return path.read_bytes()


def write(folder, files):
    """A wheel of files: name -> bytes."""
    info, rows = f"{NAME}-{VERSION}.dist-info", []
    files = {
        **files,
        f"{info}/METADATA": METADATA.encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tt\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode(),
    }
    wheel = f"{NAME}-{VERSION}-{tag()}.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
        z.writestr(f"{info}/RECORD", "".join(rows) + f"{info}/RECORD,,\n")
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {
        str(p.relative_to(HERE)): p.read_bytes()
        for p in sorted((HERE / "tt").rglob("*"))
        if p.suffix in (".py", ".pyi", ".typed")
    }
    return write(wheel_directory, {**files, "tt/libtt.so": library()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays in the tree, and takes the tree's library."""
    return write(wheel_directory, {"tt.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("tt has no source distribution: build a wheel from the whole tree")
