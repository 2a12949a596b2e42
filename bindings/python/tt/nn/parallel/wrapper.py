"""What DataParallel and DistributedDataParallel have in common."""
from __future__ import annotations

from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Wrapper(Module):
    """A model that is the attribute `module`, and is called in its place."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)
