"""Module, under the name of PyTorch's module."""
from ..module import Module

__all__ = ["Module"]
