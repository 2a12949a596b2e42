"""A context that programs enter around vmap."""
from __future__ import annotations

from contextlib import nullcontext

TransformGetItemToIndex = nullcontext  # tt.vmap maps x[i] of a tensor i as it is
