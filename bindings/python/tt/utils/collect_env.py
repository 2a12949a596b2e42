"""What a report of a bug needs to say about the machine: python -m tt.utils.collect_env."""
from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import distributions
from typing import NamedTuple

RELEVANT = ("jax", "numpy", "onnx", "onnxruntime", "torch", "tt")  # packages that are listed


class SystemEnv(NamedTuple):
    """The facts of get_env_info. Those of CUDA are None without a CUDA device."""

    torch_version: str
    tt_version: str
    build: str
    cuda_runtime_version: str | None
    nvidia_gpu_models: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: bool
    cpu_info: str
    num_threads: int
    pip_packages: str


def get_env_info() -> SystemEnv:
    """Returns versions of tt, Python and the system, and the devices."""
    import tt

    has_cuda = tt.cuda.is_available()
    isa = tt.backends.cpu.get_cpu_capability()
    devices = range(tt.cuda.device_count())
    return SystemEnv(
        torch_version=tt.__torch_version__,
        tt_version=tt.__version__,
        build=tt.build_info(),
        cuda_runtime_version=tt.version.cuda if has_cuda else None,
        nvidia_gpu_models="\n".join(tt.cuda.get_device_name(i) for i in devices) or None,
        os=f"{platform.system()} {platform.release()}",
        libc_version=" ".join(platform.libc_ver()) or "N/A",
        python_version=sys.version.replace("\n", ""),
        python_platform=platform.platform(),
        is_cuda_available=has_cuda,
        cpu_info=f"{platform.machine()}, {os.cpu_count()} CPUs, {isa}",
        num_threads=tt.get_num_threads(),
        pip_packages=installed(),
    )


def installed() -> str:
    """Returns lines `name==version` of the relevant packages that are installed."""
    found = {(d.metadata["Name"] or "").lower(): d.version for d in distributions()}
    return "\n".join(f"{name}=={found[name]}" for name in RELEVANT if name in found)


def pretty_str(envinfo: SystemEnv) -> str:
    """Returns a line `name: value` for each fact; a value of several lines is indented."""
    lines = []
    for name, value in envinfo._asdict().items():
        text = "N/A" if value is None else str(value)
        if "\n" in text:
            text = "\n    " + text.replace("\n", "\n    ")
        lines.append(f"{name}: {text}")
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """Returns the facts of get_env_info as text."""
    return pretty_str(get_env_info())


def main() -> None:
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
