"""Datasets: samples by index, or a stream of samples."""
from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from math import floor, isclose
from typing import Any, Generic, Iterable, Iterator, Sequence, TypeVar

from ..._tensor import Tensor
from ...random import Generator

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]
T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of datasets. A subclass defines __getitem__, and __len__ for most samplers.

    __getitems__(indices), if defined, returns the list of samples of a whole batch.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("subclasses of Dataset must define __getitem__")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base class of datasets that are streams. A subclass defines __iter__.

    Each worker of a DataLoader iterates over its own copy. With get_worker_info(), __iter__ can
    choose the part of the stream to return.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("subclasses of IterableDataset must define __iter__")

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """A dataset of rows of tensors: sample i is a tuple with row i of each tensor."""

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        for t in tensors:
            if not isinstance(t, Tensor):
                raise TypeError(f"TensorDataset: takes tensors, not {type(t).__name__}")
        sizes = [t.size(0) for t in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(f"TensorDataset: sizes of dim 0 are {sizes}: must be equal")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Combines the samples of several datasets of the same length.

    Sample i contains sample i of each dataset: a tuple for positional arguments, a dict for
    keyword arguments.
    """

    datasets: Any

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError("StackDataset: takes datasets by position or by name, not both")
        if not args and not kwargs:
            raise ValueError("StackDataset: needs at least one dataset")
        self.datasets = args or kwargs
        lengths = [len(d) for d in self._parts()]  # type: ignore[arg-type]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: the datasets have lengths {lengths}: must be equal")
        self._length = lengths[0]

    def _parts(self) -> tuple[Dataset[Any], ...]:
        if isinstance(self.datasets, dict):
            return tuple(self.datasets.values())
        return self.datasets

    def _sample(self, parts: Any) -> Any:
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._sample(d[index] for d in self._parts())

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        columns = []
        for dataset in self._parts():
            columns.append(samples_of(dataset, indices))
            if len(columns[-1]) != len(indices):
                raise ValueError(
                    f"StackDataset: __getitems__ of a dataset returned {len(columns[-1])} samples "
                    f"for {len(indices)} indices"
                )
        return [self._sample(parts) for parts in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The concatenation of datasets. cumulative_sizes: the index at which each one ends."""

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Returns the index at which each dataset of the sequence ends."""
        return list(accumulate(len(d) for d in sequence))

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: needs at least one dataset")
        for d in self.datasets:
            if isinstance(d, IterableDataset):
                raise AssertionError("ConcatDataset: takes no IterableDataset: use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @property
    def cummulative_sizes(self) -> list[int]:
        """The former name of cumulative_sizes."""
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError(f"ConcatDataset: index {index} is out of range of {len(self)}")
            index += len(self)
        which = bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"ConcatDataset: index {index} is out of range of {len(self)}")
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset[Any]):
    """The concatenation of IterableDatasets."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset: takes only datasets that are IterableDataset")
            yield d

    def __iter__(self) -> Iterator[Any]:
        for d in self._checked():
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self._checked())


class Subset(Dataset[T_co]):
    """The subset of a dataset at indices."""

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[T_co]:
        return samples_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def samples_of(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """Returns the samples at indices, with __getitems__ if the dataset defines it."""
    if callable(getattr(dataset, "__getitems__", None)):
        return dataset.__getitems__(indices)
    return [dataset[i] for i in indices]


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T_co]]:
    """Splits a dataset into random subsets that do not overlap.

    lengths: numbers of samples with sum len(dataset), or fractions with sum 1. Fractions are
    rounded down and the remaining samples are distributed to the subsets in turn.
    """
    from ... import _ops as ops

    total: int = len(dataset)  # type: ignore[arg-type]
    if isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts = []
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"random_split: lengths[{i}] is {fraction}: must be in 0…1")
            counts.append(int(floor(total * fraction)))
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
        if not all(counts):
            from warnings import warn

            warn(f"random_split: a subset is empty: the lengths are {counts}", stacklevel=2)
    else:
        counts = [int(n) for n in lengths]
    if sum(counts) != total:
        raise ValueError(
            f"random_split: the sum of lengths is {sum(lengths)}: must be len(dataset), {total}"
        )
    order = ops.randperm(total, generator=generator).tolist()
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - n : end]) for n, end in zip(counts, ends)]
