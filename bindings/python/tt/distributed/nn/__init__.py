"""Collective operators with gradients."""
from __future__ import annotations

from . import functional

__all__ = ["functional"]
