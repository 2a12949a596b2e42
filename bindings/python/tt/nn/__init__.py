"""Layers: so far the functions in tt.nn.functional."""
from . import functional

__all__ = ["functional"]
