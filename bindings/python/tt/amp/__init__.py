"""Mixed precision, with the names of torch.amp: autocast computes in bfloat16 or float16 where that
is safe, and GradScaler keeps small float16 gradients from becoming 0."""
from __future__ import annotations

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def __dir__() -> list[str]:
    return __all__
