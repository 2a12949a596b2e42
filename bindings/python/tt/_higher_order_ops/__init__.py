"""Operators that take functions, with the names of torch._higher_order_ops."""
from __future__ import annotations

from .._torch_functions import cond as cond
from .associative_scan import associative_scan as associative_scan
from .foreach_map import foreach_map as foreach_map
from .map import map as map
from .while_loop import while_loop as while_loop
