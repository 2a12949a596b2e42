"""DistributedSampler: divides the indices of a dataset among processes."""
from __future__ import annotations

from typing import Any, Iterator, TypeVar

from ... import _ops as ops
from ...random import Generator
from .sampler import Sampler

__all__ = ["DistributedSampler"]
T_co = TypeVar("T_co", covariant=True)


class DistributedSampler(Sampler[T_co]):
    """Yields the indices of one of num_replicas processes: elements rank, rank + num_replicas, …
    of an order that is the same in all processes.

    num_replicas, rank: by default those of the default process group, 1 and 0 without one.
    shuffle: a random order that depends on seed and epoch. Call set_epoch(epoch) before each
        epoch.
    drop_last: drops the last indices so that all processes have the same number; otherwise the
        first indices are repeated.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        from ... import distributed

        world = distributed.group.WORLD
        size, place = (world.size(), world.rank()) if world else (1, 0)
        self.num_replicas = size if num_replicas is None else num_replicas
        self.rank = place if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"DistributedSampler: rank is {self.rank}: must be in 0…{self.num_replicas - 1}"
            )
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        self.epoch = 0
        n = len(dataset)
        self.num_samples = n // self.num_replicas if drop_last else -(-n // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[Any]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            order = ops.randperm(n, generator=Generator(self.seed + self.epoch)).tolist()
        if n:
            order *= -(-self.total_size // n)
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, on which the random order depends."""
        self.epoch = epoch
