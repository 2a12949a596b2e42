"""The former name of tt.library."""
from __future__ import annotations

from .library import custom_op as custom_op
