"""Functions for several devices, under the name of PyTorch's module."""
from __future__ import annotations

from . import gather as gather
from . import scatter as scatter
