"""Mixed precision with the older names of torch.cpu.amp; tt.amp has the current ones."""
from __future__ import annotations

from .. import amp
from .._types import bfloat16
from .._types import dtype as Dtype

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """Same as tt.amp.autocast("cpu")."""

    def __init__(
        self, enabled: bool = True, dtype: Dtype = bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """Same as tt.amp.GradScaler("cpu")."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
