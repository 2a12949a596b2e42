"""The profiler under its older name, torch.autograd.profiler."""
from __future__ import annotations

from typing import Any

from .. import profiler
from .._absent import absent_class
from ..profiler import EventList, record_function

__all__ = ["EventList", "emit_nvtx", "profile", "record_function"]
emit_nvtx = absent_class("autograd.profiler.emit_nvtx", "NVTX ranges have no reader")


class profile(profiler.profile):
    """tt.profiler.profile, which enabled=False disables."""

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        known = {
            name: value
            for name, value in options.items()
            if name not in ("use_device", "use_kineto", "use_cpu", "check_error")
        }
        super().__init__(**known)
        self.enabled = enabled

    def start(self) -> None:
        if self.enabled:
            super().start()
