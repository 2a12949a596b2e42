"""Samplers, which determine the order in which a loader reads samples."""
from __future__ import annotations

from itertools import islice
from typing import Any, Generic, Iterable, Iterator, Sequence, Sized, TypeVar

from ... import _ops as ops
from ..._create import as_tensor
from ..._types import float64
from ...random import Generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]
T_co = TypeVar("T_co", covariant=True)
CHUNK = 32  # indices drawn at a time with replacement


class Sampler(Generic[T_co]):
    """Base class of samplers. A subclass defines __iter__, which yields indices or lists of
    indices, and __len__ if their number is known."""

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("subclasses of Sampler must define __iter__")


class SequentialSampler(Sampler["int"]):
    """Yields the indices 0, 1, …, len(data_source) - 1."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler["int"]):
    """Yields indices in random order.

    replacement: draws indices with replacement; otherwise yields consecutive permutations of all
    indices.
    num_samples: number of indices; by default len(data_source).
    generator: by default a new one in each epoch, seeded from this thread's generator.
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"RandomSampler: replacement must be a bool, not {type(replacement).__name__}"
            )
        check_count("RandomSampler", self.num_samples)

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, generator = len(self.data_source), self.generator
        if generator is None:
            generator = Generator(random_seed())
        if self.replacement:
            for start in range(0, self.num_samples, CHUNK):
                count = min(CHUNK, self.num_samples - start)
                yield from ops.randint(0, n, (count,), generator=generator).tolist()
        elif n:
            for _ in range(self.num_samples // n):
                yield from ops.randperm(n, generator=generator).tolist()
            rest = self.num_samples % n
            if rest:
                yield from ops.randperm(n, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler["int"]):
    """Yields the given indices in random order."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in ops.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler["int"]):
    """Yields num_samples indices of weights, with probabilities proportional to the weights."""

    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        check_count("WeightedRandomSampler", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"WeightedRandomSampler: replacement is {replacement}: must be a bool")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"WeightedRandomSampler: weights has shape {list(self.weights.shape)}: must be 1-d"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = ops.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler["list[int]"]):
    """Yields lists of batch_size indices of a sampler. drop_last: drops a shorter last list."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        check_count("BatchSampler", batch_size, "batch_size")
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last is {drop_last}: must be a bool")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        batch = list(islice(indices, self.batch_size))
        while batch and (len(batch) == self.batch_size or not self.drop_last):
            yield batch
            batch = list(islice(indices, self.batch_size))

    def __len__(self) -> int:
        n: int = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def check_count(owner: str, n: Any, name: str = "num_samples") -> None:
    """Raises ValueError unless n is a positive int."""
    if not isinstance(n, int) or isinstance(n, bool) or n <= 0:
        raise ValueError(f"{owner}: {name} is {n!r}: must be a positive integer")


def random_seed(generator: Generator | None = None) -> int:
    """Draws a seed from a generator, by default this thread's."""
    return int(ops.randint(0, 2**63 - 1, (), generator=generator).item())
