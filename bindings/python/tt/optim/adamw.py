"""AdamW, under the name of PyTorch's module."""
from ._optimizers import AdamW

__all__ = ["AdamW"]
