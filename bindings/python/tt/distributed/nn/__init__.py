"""Collective operators with gradients."""
from __future__ import annotations

from . import functional
from .functional import *  # noqa: F403

__all__ = ["functional", *functional.__all__]
