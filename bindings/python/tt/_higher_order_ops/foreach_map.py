"""foreach_map, with the API of torch._higher_order_ops.foreach_map."""
from __future__ import annotations

from typing import Any, Callable

__all__ = ["foreach_map"]


def foreach_map(op: Callable[..., Any], *operands: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Returns op of the first elements of all lists, of the second ones, … An operand that is no
    list or tuple is passed to each call."""
    lists = [x for x in operands if isinstance(x, (list, tuple))]
    if not lists or any(len(x) != len(lists[0]) for x in lists):
        raise ValueError(
            f"foreach_map: the lists have {[len(x) for x in lists]} elements: must be one or more "
            "lists of one length"
        )
    found = []
    for i in range(len(lists[0])):
        args = [x[i] if isinstance(x, (list, tuple)) else x for x in operands]
        found.append(op(*args, **kwargs))
    return tuple(found)
