"""Files of tensors, with the API of the safetensors package: save_file, load_file, safe_open."""
from __future__ import annotations

import os
from ctypes import byref, c_void_p
from typing import Mapping, Union

from ._handles import SafeTensorsHandle, safetensors_save
from ._hints import Self
from ._lib import call, quick
from ._tensor import Tensor

Path = Union[str, bytes, os.PathLike[str]]

__all__ = ["load_file", "safe_open", "save_file"]


def save_file(
    tensors: Mapping[str, Tensor], filename: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Writes named tensors. After a crash the file is either the old or the new one.

    metadata: strings stored beside the tensors.
    Raises TtError for complex128, which the format lacks.
    """
    pairs = None
    if metadata:
        pairs = [text for pair in metadata.items() for text in pair]
    safetensors_save(filename, list(tensors), list(tensors.values()), pairs)


class safe_open(SafeTensorsHandle):
    """An open file, which reads tensors on request. It is a context manager.

    mmap: tensors are read-only views of the file, which must not be changed while they exist.
    Raises FileError or FormatError.
    """

    __slots__ = ()

    def __init__(self, filename: Path, mmap: bool = False) -> None:
        open_file = "tt_safetensors_map" if mmap else "tt_safetensors_open"
        call(open_file, os.fsencode(filename), byref(self))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        handle, self._address = c_void_p(self._address), None
        quick.tt_safetensors_release(handle)

    def get_tensor(self, name: str) -> Tensor:
        """Returns a tensor on the CPU. Raises OutOfRangeError for an unknown name."""
        return self.get(self.find(name))


def load_file(filename: Path, mmap: bool = False) -> dict[str, Tensor]:
    """Returns all tensors of a file by name. mmap: see safe_open."""
    with safe_open(filename, mmap) as f:
        return {name: f.get_tensor(name) for name in f.keys()}


def __dir__() -> list[str]:
    return __all__
