"""Operators that take functions, with the names of torch._higher_order_ops."""
from __future__ import annotations

from .associative_scan import associative_scan as associative_scan
