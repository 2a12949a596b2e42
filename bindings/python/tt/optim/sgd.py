"""SGD, under the name of PyTorch's module."""
from ._optimizers import SGD

__all__ = ["SGD"]
