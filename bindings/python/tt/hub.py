"""Models of a folder with a hubconf.py, with the API of torch.hub.

Only load_state_dict_from_url and download_url_to_file download. load, list and help take local
folders only.
"""
from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import urllib.request
from builtins import list as _list
from types import ModuleType
from typing import Any, Callable
from urllib.parse import urlparse

from .errors import FileError, UnimplementedError

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of the content, as file names on hubs have it
chosen: str | None = None


def _get_torch_home() -> str:
    """Returns $TORCH_HOME or ~/.cache/torch. Torchvision keeps its datasets there."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join(os.path.expanduser("~"), ".cache"))
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Returns the folder for downloads: that of set_dir, $TORCH_HOME/hub or ~/.cache/torch/hub."""
    return chosen if chosen is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder for downloads."""
    global chosen
    chosen = os.path.expanduser(d)


def entries(op: str, folder: str, source: str) -> ModuleType:
    """Runs hubconf.py of a local folder. Returns the module."""
    if source != "local":
        raise UnimplementedError(
            f"hub.{op}: source is '{source}': tt loads local folders only: give source='local' "
            "and the folder of a checked-out repository"
        )
    path = os.path.join(folder, "hubconf.py")
    if not os.path.exists(path):
        raise FileError(f"hub.{op}: there is no {path}")
    spec: Any = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def entry(op: str, folder: str, model: str, source: str) -> Callable[..., Any]:
    function = getattr(entries(op, folder, source), model, None)
    if not callable(function):
        raise RuntimeError(f"hub.{op}: {folder} has no model '{model}'")
    return function


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Returns model(*args, **kwargs) of hubconf.py in a local folder. source must be "local"."""
    return entry("load", repo_or_dir, model, source)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    verbose: bool = True,
    source: str = "local",
) -> _list[str]:
    """Returns the names of the models of a local folder."""
    module = entries("list", github, source)
    return [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    source: str = "local",
) -> str | None:
    """Returns the documentation of a model of a local folder."""
    return entry("help", github, model, source).__doc__


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Writes the content of a URL to a file, whose SHA-256 must begin with hash_prefix.

    Raises RuntimeError, and leaves dst unchanged, if the hash differs. progress is ignored.
    """
    digest = hashlib.sha256()
    folder = os.path.dirname(os.path.abspath(dst))
    with urllib.request.urlopen(url) as source:
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as target:
            try:
                while True:
                    block = source.read(1 << 20)
                    if not block:
                        break
                    digest.update(block)
                    target.write(block)
                target.close()
                if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
                    raise RuntimeError(
                        f"hub: {url} has the hash {digest.hexdigest()}: must begin with "
                        f"{hash_prefix}"
                    )
                shutil.move(target.name, dst)
            finally:
                if os.path.exists(target.name):
                    os.unlink(target.name)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Downloads the file of a URL once into model_dir and returns tt.load of it.

    check_hash: the SHA-256 must begin with HASH of the file's name, which ends in -HASH.EXT.
    """
    from .serialization import load as load_file

    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match.group(1) if match else None, progress)
    return load_file(path, map_location=map_location, weights_only=weights_only)


def __dir__() -> Any:
    return __all__
