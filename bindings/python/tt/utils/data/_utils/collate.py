"""Functions that make a batch, under the name of PyTorch's module."""
from __future__ import annotations

import re
from typing import Any

from .... import _ops as ops
from ...._tensor import Tensor
from ..collate import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]
np_str_obj_array_pattern = re.compile(r"[SaUO]")  # dtypes of NumPy that have no tensor


def collate_tensor_fn(batch: list[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    """Returns the tensors stacked along a new first dimension."""
    return ops.stack(list(batch))
