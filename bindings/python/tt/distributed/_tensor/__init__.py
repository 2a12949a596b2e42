"""The former name of tt.distributed.tensor."""
from __future__ import annotations

from ..tensor import *  # noqa: F403
