"""Arrays of files of other programs as tensors, read by libtt: NumPy's .npy and .npz, IDX (MNIST),
CSV and GGUF. Files are checked whole: a malformed one raises FormatError, which names the byte or
the line."""
from __future__ import annotations

import json
import os
from ctypes import c_int32, c_int64
from typing import Any

from . import _convert as convert
from ._handles import StateDictHandle, idx_load, npy_load
from ._handles import npz_load as npz_handle
from ._lib import result
from ._tensor import Tensor, tensor_result
from ._types import dtype as Dtype

__all__ = ["GGUF", "csv_load", "gguf_load", "idx_load", "npy_load", "npz_load"]


def npz_load(path: str | bytes | os.PathLike[str]) -> dict[str, Tensor]:
    """Loads the arrays of an archive of np.savez (.npz) by their names. Compressed archives, of
    np.savez_compressed, are refused."""
    state = npz_handle(path)
    return {name: state.get(i) for i, name in enumerate(state.keys())}


def csv_load(
    path: str | bytes | os.PathLike[str],
    delimiter: str = ",",
    skip_rows: int = 0,
    dtype: Dtype | None = None,
) -> Tensor:
    """Loads a text of rows of numbers as [rows, columns].

    Every row must have as many fields; empty lines do not count. skip_rows: lines at the start that
    are no numbers. dtype: a real one; None: the default dtype.
    """
    return tensor_result(
        "tt_csv_load",
        os.fsencode(path),
        delimiter.encode(),
        c_int64(convert.integer(skip_rows, "csv_load", "skip_rows")),
        c_int32(convert.dtype_code(dtype, "csv_load", "dtype")),
    )


class GGUF:
    """The contents of a GGUF file.

    tensors: by name; packed ones, such as those of type "q8_0", are the uint8 bytes of their rows.
    types: the type of each tensor, by GGML's name in lower case.
    metadata: numbers, truth values, texts and lists of these.
    """

    __slots__ = ("metadata", "tensors", "types", "version")

    def __init__(self, state: StateDictHandle) -> None:
        structure = json.loads(state.structure() or "{}")
        self.version: int = structure["version"]
        self.metadata = {key: _plain(value) for key, value in structure["metadata"].items()}
        self.types: dict[str, str] = structure["types"]
        self.tensors = {name: state.get(i) for i, name in enumerate(state.keys())}


def _plain(value: Any) -> Any:
    """Returns a value of metadata; {"float": "inf"} stands for a number that JSON lacks."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value["float"]) if isinstance(value, dict) else value


def gguf_load(path: str | bytes | os.PathLike[str], mmap: bool = False) -> GGUF:
    """Loads a GGUF file of version 2 or 3.

    mmap: tensors are read-only views of the file, which must not be changed while they exist.
    """
    name = "tt_gguf_map" if mmap else "tt_gguf_load"
    return GGUF(result(StateDictHandle, name, os.fsencode(path)))


def __dir__() -> list[str]:
    return __all__
