"""The names of torch.distributed.tensor._utils."""
from __future__ import annotations

from ..._absent import absent_function

compute_local_shape_and_global_offset = absent_function(
    "distributed.tensor._utils.compute_local_shape_and_global_offset", "tt has no DTensor"
)
