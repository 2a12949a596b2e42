"""Mixed precision with the older names of torch.cuda.amp; tt.amp has the current ones."""
from __future__ import annotations

from typing import Any

from .. import amp
from ..amp import autocast_mode as autocast_mode
from ..amp import grad_scaler as grad_scaler
from ..amp.autocast_mode import custom_bwd as custom_bwd_of
from ..amp.autocast_mode import custom_fwd as custom_fwd_of
from .._types import float16
from .._types import dtype as Dtype

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """Same as tt.amp.autocast("cuda")."""

    def __init__(
        self, enabled: bool = True, dtype: Dtype = float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """Same as tt.amp.GradScaler("cuda")."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(fwd: Any = None, *, cast_inputs: Dtype | None = None) -> Any:
    """Same as tt.amp.custom_fwd with device_type "cuda"."""
    return custom_fwd_of(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """Same as tt.amp.custom_bwd with device_type "cuda"."""
    return custom_bwd_of(bwd, device_type="cuda")
