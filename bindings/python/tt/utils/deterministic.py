"""The setting of torch.utils.deterministic."""
from __future__ import annotations

import sys
from types import ModuleType


class Settings(ModuleType):
    """The class of this module, which checks values of its attribute."""

    _fill = True

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether PyTorch fills new memory in its deterministic mode. tt keeps the value; `empty`
        never fills memory."""
        return self._fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(
                f"fill_uninitialized_memory must be a bool, not {type(mode).__name__}"
            )
        self._fill = mode


sys.modules[__name__].__class__ = Settings
