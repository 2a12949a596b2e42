"""Arrays of files of other programs as tensors, read by libtt: NumPy's .npy and .npz, IDX (MNIST)
and CSV. Files are checked whole: a malformed one raises FormatError, which names the byte or the
line."""
from __future__ import annotations

import os
from ctypes import c_int32, c_int64

from . import _convert as convert
from ._handles import idx_load, npy_load
from ._handles import npz_load as npz_handle
from ._tensor import Tensor, tensor_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import dtype as Dtype

__all__ = ["csv_load", "idx_load", "npy_load", "npz_load"]


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


def __dir__() -> list[str]:
    return __all__
