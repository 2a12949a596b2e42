"""Adam, under the name of PyTorch's module."""
from ._optimizers import Adam

__all__ = ["Adam"]
