"""The profiler under its older name, torch.autograd.profiler."""
from __future__ import annotations

from typing import Any

from .. import profiler
from .._hints import Self
from ..errors import UnimplementedError
from ..profiler import EventList, record_function

__all__ = ["EventList", "emit_itt", "emit_nvtx", "profile", "record_function"]


class Ranges:
    """The base of emit_nvtx and emit_itt, whose ranges have no reader: enabled must be False."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise UnimplementedError(
                f"autograd.profiler.{type(self).__name__}: its ranges have no reader; use profiler"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class emit_nvtx(Ranges):
    """A block that does nothing with enabled=False. Otherwise the constructor raises."""


class emit_itt(Ranges):
    """A block that does nothing with enabled=False. Otherwise the constructor raises."""


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

    @property
    def function_events(self) -> EventList:
        """The events of the profile."""
        return self.events()

    def __str__(self) -> str:
        """Returns the table of the rows; "None" for a disabled profile."""
        return self.table() if self.enabled else "None"

    def start(self) -> None:
        if self.enabled:
            super().start()
