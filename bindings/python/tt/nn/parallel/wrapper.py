"""The base of DataParallel and DistributedDataParallel."""
from __future__ import annotations

from typing import Any

from ..module import Module


class Wrapper(Module):
    """Wraps a model, the attribute `module`."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)
