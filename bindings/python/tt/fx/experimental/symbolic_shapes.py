"""Names of torch.fx.experimental.symbolic_shapes: sizes are Python's numbers."""
from __future__ import annotations

from typing import Any

from ..._absent import absent_class

GuardOnDataDependentSymNode = absent_class(
    "fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode", "sizes are Python's numbers"
)


def guard_or_false(a: Any) -> bool:
    """Returns bool(a)."""
    return bool(a)


guard_or_true = statically_known_true = guard_size_oblivious = guard_or_false


def free_symbols(val: Any) -> set[Any]:
    """Returns an empty set."""
    return set()


free_unbacked_symbols = free_symbols
