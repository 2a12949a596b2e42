"""Flattens structures of lists, tuples and dicts into lists of leaves, and restores them."""
from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, Callable, Sequence

from ._tensor import Tensor


class Place:
    """Stands for a leaf that was taken out of a structure. index: the number of the leaf."""

    def __init__(self, index: int) -> None:
        self.index = index

    def of(self, leaves: Sequence[Any]) -> Any:
        """Returns the leaf among all that were taken out."""
        return leaves[self.index]

    def identity(self) -> Any:
        """Returns what is equal for places of the same leaf."""
        return Place, self.index


def mapped(structure: Any, change: Callable[[Any], Any]) -> Any:
    """Applies a function to the leaves of a structure of lists, tuples and dicts."""
    if isinstance(structure, tuple):
        items = [mapped(x, change) for x in structure]
        make = getattr(type(structure), "_make", tuple)  # of named tuples
        return make(items)
    if type(structure) is list:
        return [mapped(x, change) for x in structure]
    if isinstance(structure, defaultdict):
        pairs = [(key, mapped(x, change)) for key, x in structure.items()]
        return type(structure)(structure.default_factory, pairs)
    if isinstance(structure, dict):
        return type(structure)((key, mapped(x, change)) for key, x in structure.items())
    if isinstance(structure, deque):
        return type(structure)([mapped(x, change) for x in structure], structure.maxlen)
    return change(structure)


def leaves_like(structure: Any, like: Any, what: str) -> list[Any]:
    """Returns what a structure has for each Place of `like`, in the order of the places.

    Raises RuntimeError unless containers and keys are those of `like`.
    """
    if isinstance(like, Place):
        if isinstance(structure, (tuple, list, dict, deque)):
            raise RuntimeError(f"{what} have a {type(structure).__name__} in place of a tensor")
        return [structure]
    if not isinstance(like, (tuple, list, dict, deque)):
        return []
    if type(structure) is not type(like):
        raise RuntimeError(
            f"{what} have a {type(structure).__name__} where a {type(like).__name__} must be"
        )
    if len(structure) != len(like):
        raise RuntimeError(f"{what} have {len(structure)} items: must be {len(like)}")
    if isinstance(like, dict):
        if set(structure) != set(like):
            raise RuntimeError(f"{what} have the keys {list(structure)}: must be {list(like)}")
        pairs = [(structure[key], like[key]) for key in like]
    else:
        pairs = list(zip(structure, like))
    return [leaf for s, x in pairs for leaf in leaves_like(s, x, what)]


def is_tensor(x: Any) -> bool:
    """Returns whether a leaf is a tensor."""
    return isinstance(x, Tensor)


def without_tensors(
    structure: Any, tensors: list[Any], is_leaf: Callable[[Any], bool] = is_tensor
) -> Any:
    """Replaces the tensors of a structure by places, and appends them to `tensors`."""

    def change(x: Any) -> Any:
        if not is_leaf(x):
            return x
        tensors.append(x)
        return Place(len(tensors) - 1)

    return mapped(structure, change)


def with_tensors(structure: Any, tensors: Sequence[Any]) -> Any:
    """Replaces the places of a structure by tensors."""
    return mapped(structure, lambda x: x.of(tensors) if isinstance(x, Place) else x)


def broadcast(
    prefix: Any, structure: Any, what: str, is_leaf: Callable[[Any], bool] = is_tensor
) -> list[Any]:
    """Returns the leaf of prefix for each tensor of the structure.

    A leaf of prefix applies to the whole subtree at its position. Raises ValueError if prefix is
    not a prefix of the structure.
    """
    if isinstance(prefix, (tuple, list)) and isinstance(structure, (tuple, list)):
        if len(prefix) != len(structure):
            raise ValueError(f"{what} has length {len(prefix)}: must be {len(structure)}")
        parts = [broadcast(p, s, what, is_leaf) for p, s in zip(prefix, structure)]
        return [leaf for part in parts for leaf in part]
    if isinstance(prefix, dict) and isinstance(structure, dict):
        if set(prefix) != set(structure):
            raise ValueError(f"{what} has the keys {list(prefix)}: must be {list(structure)}")
        parts = [broadcast(prefix[key], structure[key], what, is_leaf) for key in structure]
        return [leaf for part in parts for leaf in part]
    if isinstance(prefix, (tuple, list, dict)):
        raise ValueError(f"{what} is {prefix!r} where the function has one value")
    tensors: list[Any] = []
    without_tensors(structure, tensors, is_leaf)
    return [prefix] * len(tensors)
