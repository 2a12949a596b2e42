"""Handles of hooks, as in torch.utils.hooks."""
from ..nn.module import RemovableHandle

__all__ = ["RemovableHandle"]
