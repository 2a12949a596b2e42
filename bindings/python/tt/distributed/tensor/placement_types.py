"""Placements of a tensor along one dimension of a mesh of devices."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Base class of placements."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each device has a part of dimension dim."""

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each device has the whole tensor."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each device has a term of a reduction."""

    reduce_op: str = "sum"


class _StridedShard(Shard):
    """Shard of a tensor that another dimension of the mesh shards first."""


def __dir__() -> list[str]:
    return __all__
