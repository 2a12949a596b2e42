"""The profiler by its older name, torch.autograd.profiler."""
from __future__ import annotations

from ..profiler import profile, record_function

__all__ = ["profile", "record_function"]
