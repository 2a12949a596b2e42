"""Build backend of pip: a wheel with the package and libtt inside. Needs nothing but Python, and
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


def tag(settings):
    """The tag of the wheel; its platform is the setting `platform`, else this machine's."""
    name = (settings or {}).get("platform") or sysconfig.get_platform()
    return "py3-none-" + name.replace("-", "_").replace(".", "_")


def library():
    """The path of the library."""
    path = Path(os.environ.get("TT_LIBRARY") or TREE / "build/libtt.so")
    if not path.exists() and "TT_LIBRARY" not in os.environ:
        subprocess.run(["cmake", "-S", TREE, "-B", TREE / "build", "-DTT_TESTS=OFF"], check=True)
        subprocess.run(
            ["cmake", "--build", TREE / "build", "--target", "tt", "-j", str(os.cpu_count() or 1)],
            check=True,
        )
    return path


def entry(name):
    """A file of the archive, of no particular time, so that equal contents give equal bytes."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def write(folder, files, settings):
    """A wheel of files: name -> bytes."""
    tag_name = tag(settings)
    info, rows = f"{NAME}-{VERSION}.dist-info", []
    files = {
        **files,
        f"{info}/METADATA": METADATA.encode(),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: tt\nRoot-Is-Purelib: false\nTag: {tag_name}\n"
        ).encode(),
    }
    wheel = f"{NAME}-{VERSION}-{tag_name}.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(entry(name), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
        z.writestr(entry(f"{info}/RECORD"), "".join(rows) + f"{info}/RECORD,,\n")
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {
        str(p.relative_to(HERE)): p.read_bytes()
        for p in sorted((HERE / "tt").rglob("*"))
        if p.suffix in (".py", ".pyi", ".typed")
    }
    found = library()
    name = "libtt" + (found.suffix if found.suffix in (".dll", ".dylib") else ".so")
    return write(wheel_directory, {**files, f"tt/{name}": found.read_bytes()}, config_settings)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays in the tree, and takes the tree's library."""
    return write(wheel_directory, {"tt.pth": f"{HERE}\n".encode()}, config_settings)


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("tt has no source distribution: build a wheel from the whole tree")
