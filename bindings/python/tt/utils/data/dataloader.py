"""DataLoader: batches of a dataset, made by the caller, by worker processes or by threads."""
from __future__ import annotations

import multiprocessing
import time
from itertools import chain, islice, repeat
from typing import Any, Callable, Generic, Iterable, Iterator, TypeVar

from ...random import Generator, get_rng_state, set_rng_state
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .native import Batches, is_native
from .sampler import BatchSampler, RandomSampler, SequentialSampler, random_seed
from .worker import Exhausted, Failure, Job, ProcessPool, ThreadPool, get_worker_info
from .dataset import Dataset

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
T_co = TypeVar("T_co", covariant=True)
_collate_fn_t = _worker_init_fn_t = object  # hints that libraries import
STATE_VERSION = 1
FIXED = "batch_size batch_sampler sampler drop_last dataset persistent_workers".split()


class DataLoader(Generic[T_co]):
    """Iterates over the batches of a dataset.

    batch_size: number of samples in a batch; None: returns single samples, not collated.
    shuffle: draws a new random order in each epoch.
    sampler: yields the indices. batch_sampler: yields lists of indices.
    num_workers: number of workers that make batches in advance; 0: the caller makes them.
    collate_fn: makes a batch from a list of samples; by default default_collate, or
        default_convert if batch_size is None.
    drop_last: drops the last batch if it is shorter.
    timeout: seconds to wait for a batch from the workers; 0: no limit.
    worker_init_fn: called in each worker with the worker's number before its first batch.
    multiprocessing_context: a context, or the start method "fork", "spawn" or "forkserver".
    generator: draws random orders and the seeds of workers; by default this thread's.
    prefetch_factor: number of batches that each worker makes in advance; by default 2.
    persistent_workers: keeps the workers alive between epochs.
    in_order: False returns batches in the order in which the workers finish them.
    worker: "process", or "thread" for datasets that spend their time outside of Python code. The
        seed of a worker is one that is drawn for the epoch, plus the worker's number.
    pin_memory and pin_memory_device are ignored.

    libtt makes the batches of a TensorDataset with the default collate_fn: its workers are threads
    regardless of `worker`, unless there is a worker_init_fn.

    state_dict() and load_state_dict() allow resuming in the middle of an epoch.
    """

    dataset: Dataset[T_co]
    batch_size: int | None
    num_workers: int
    drop_last: bool
    timeout: float
    sampler: Any
    _initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker: str = "process",
    ) -> None:
        if num_workers < 0:
            raise ValueError(f"DataLoader: num_workers is {num_workers}: must be >= 0")
        if timeout < 0:
            raise ValueError(f"DataLoader: timeout is {timeout}: must be >= 0")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("DataLoader: prefetch_factor needs num_workers > 0")
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(f"DataLoader: prefetch_factor is {prefetch_factor}: must be >= 1")
        if persistent_workers and num_workers == 0:
            raise ValueError("DataLoader: persistent_workers needs num_workers > 0")
        if worker not in ("process", "thread"):
            raise ValueError(f"DataLoader: worker is {worker!r}: must be 'process' or 'thread'")
        self.dataset, self.num_workers, self.worker = dataset, num_workers, worker
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.generator = generator
        self._iterable = isinstance(dataset, IterableDataset)
        self._check_order(shuffle, sampler, batch_sampler, batch_size, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._kept: WorkerIterator | None = None
        self._position: Position | None = None
        self._resume: dict[str, Any] | None = None
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in FIXED:
            raise ValueError(f"DataLoader: {name} cannot be changed after __init__")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        """Whether the dataset is asked for each sample of a batch. A subclass may return False:
        the dataset receives what _index_sampler yields."""
        return self.batch_sampler is not None

    @property
    def multiprocessing_context(self) -> Any:
        """Returns the context that starts worker processes; None: the default one."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None and self.num_workers == 0:
            raise ValueError("DataLoader: multiprocessing_context needs num_workers > 0")
        if isinstance(context, str):
            known = multiprocessing.get_all_start_methods()
            if context not in known:
                raise ValueError(
                    f"DataLoader: multiprocessing_context is {context!r}: must be one of {known}"
                )
            context = multiprocessing.get_context(context)
        elif context is not None and not hasattr(context, "Process"):
            raise TypeError(
                "DataLoader: multiprocessing_context must be a context or its name, not "
                + type(context).__name__
            )
        self._context = context

    def _check_order(
        self, shuffle: Any, sampler: Any, batch_sampler: Any, batch_size: Any, drop_last: bool
    ) -> None:
        """Raises ValueError for arguments that contradict each other."""
        if shuffle not in (None, True, False):
            raise ValueError(f"DataLoader: shuffle is {shuffle!r}: must be a bool or None")
        if self._iterable:
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(f"DataLoader: an IterableDataset takes no {name}")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: takes sampler or shuffle, not both")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last"
                )
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last needs a batch_size")

    def _default_sampler(self, shuffle: bool) -> Iterable[Any]:
        if self._iterable:
            return Unknown()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)  # type: ignore[arg-type]
        return SequentialSampler(self.dataset)  # type: ignore[arg-type]

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        """Returns the number of batches of an epoch. An IterableDataset must define __len__."""
        if not self._iterable:
            return len(self._index_sampler)
        n: int = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        state, self._resume = self._resume, None
        if state is None:
            return self._iterator(self._start())
        before = get_rng_state()
        self._set_start(state)
        if state["default_generator"] is None:  # between two epochs
            return self._iterator(self._start())
        try:
            set_rng_state(state["default_generator"])
            start = {name: state[name] for name in ("default_generator", "generators", "epoch")}
            return self._iterator(start, state["batches"])
        finally:
            set_rng_state(before)

    def _get_iterator(self) -> Iterator[Any]:
        """Returns an iterator over an epoch; loaders call it that have an __iter__ of their own."""
        return DataLoader.__iter__(self)

    def _iterator(self, start: dict[str, Any], skip: int = 0) -> LoaderIterator:
        """Returns an iterator over an epoch without its first `skip` batches."""
        iterator: LoaderIterator
        base_seed = random_seed(self.generator)
        if is_native(self):
            iterator = NativeIterator(self, base_seed)
        elif self.num_workers == 0:
            iterator = SingleIterator(self, base_seed)
        elif self._kept is not None and not self._kept.pool.closed:
            iterator = self._kept
        else:
            iterator = WorkerIterator(self, base_seed)
            if self.persistent_workers:
                self._kept = iterator
        self._position = Position(start)
        iterator.begin(self._position, skip)
        return iterator

    # ---- state ----

    def _generators(self) -> list[Generator]:
        """Returns the generators that the order depends on, except this thread's."""
        generators: list[Generator] = []
        inner = getattr(self.batch_sampler, "sampler", None)
        for owner in (self, self.sampler, self.batch_sampler, inner):
            generator = getattr(owner, "generator", None)
            if isinstance(generator, Generator) and all(generator is not g for g in generators):
                generators.append(generator)
        return generators

    def _start(self) -> dict[str, Any]:
        """Returns the state that determines the epoch that starts now."""
        return {
            "default_generator": get_rng_state(),
            "generators": [g.get_state() for g in self._generators()],
            "epoch": getattr(self.sampler, "epoch", None),
        }

    def _set_start(self, state: dict[str, Any]) -> None:
        generators = self._generators()
        for generator, known in zip(generators, state["generators"]):
            generator.set_state(known)
        if state["epoch"] is not None:
            self.sampler.set_epoch(state["epoch"])

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the last iterator: the number of batches that it returned and the
        state of the generators at the start of its epoch."""
        if self._resume is not None:
            return dict(self._resume)
        at = self._position
        if at is None or at.finished:
            start = {**self._start(), "default_generator": None}
            return {"version": STATE_VERSION, "batches": 0, **start}
        return {"version": STATE_VERSION, "batches": at.returned, **at.start}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration resume where state_dict() was called.

        The order is drawn again and the batches that were already returned are skipped, by index
        or, for an IterableDataset, by reading them. Samplers must use only tt's generators.
        The state of this thread's generator does not change.
        """
        if state_dict.get("version") != STATE_VERSION:
            raise ValueError(
                f"load_state_dict: version is {state_dict.get('version')}: must be {STATE_VERSION}"
            )
        saved, own = len(state_dict["generators"]), len(self._generators())
        if saved != own:
            raise ValueError(
                f"load_state_dict: the state has {saved} generators, this loader has {own}"
            )
        self._resume = dict(state_dict)


class Unknown:
    """The sampler of an IterableDataset, which has no indices: yields None."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class Position:
    """The position of an iterator, which may outlive the iterator.

    start: the state that determined its epoch. returned: the number of batches returned.
    finished: whether the iterator has raised StopIteration.
    """

    def __init__(self, start: dict[str, Any]) -> None:
        self.start, self.returned, self.finished = start, 0, False


def items(iterator: Iterator[Any]) -> Iterator[Any]:
    """Yields the items of an iterator by next() alone: iter() restarts those of some samplers."""
    try:
        while True:
            yield next(iterator)
    except StopIteration:
        return


class LoaderIterator:
    """An iterator over the batches of a loader."""

    position: Position
    broken = False  # a worker has died

    def __init__(self, loader: DataLoader[Any], base_seed: int) -> None:
        self.loader, self.base_seed = loader, base_seed
        self.indices: Iterator[Any] = iter(())

    def begin(self, position: Position, skip: int) -> None:
        """Starts an epoch without its first `skip` batches."""
        self.position = position
        self.indices = items(iter(self.loader._index_sampler))
        if not self.loader._iterable:
            position.returned = sum(1 for _ in islice(self.indices, skip))
            first = list(islice(self.indices, 1))  # a random order is drawn now
            self.indices = chain(first, self.indices)
        self._begin()
        while self.loader._iterable and position.returned < skip and not position.finished:
            next(self, None)

    def _begin(self) -> None:
        raise NotImplementedError

    def _next(self) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.position.finished or self.broken:
            raise StopIteration
        try:
            batch = self._next()
        except StopIteration:
            self.position.finished = True
            raise
        self.position.returned += 1
        return batch

    def __len__(self) -> int:
        return len(self.loader._index_sampler)


class SingleIterator(LoaderIterator):
    """Makes each batch on demand."""

    def _begin(self) -> None:
        self.fetch = Job(self.loader, self.base_seed).fetcher()

    def _next(self) -> Any:
        index = next(self.indices)
        if self.loader._iterable:
            return self.fetch(index)
        try:
            return self.fetch(index)
        except StopIteration as error:
            raise RuntimeError("DataLoader: a sample raised StopIteration") from error


class NativeIterator(LoaderIterator):
    """Batches of a TensorDataset, made by the C library. Workers are its threads."""

    def begin(self, position: Position, skip: int) -> None:
        self.position = position
        position.returned = min(skip, len(self))
        self.batches = Batches(self.loader, position.returned)

    def _next(self) -> Any:
        return self.batches.next()


class WorkerIterator(LoaderIterator):
    """Sends numbered tasks to workers in turn and returns the batches in the order of the tasks.

    sent: number of the next task. awaited: number of the next batch to return. first: number of
    the first task of the epoch; answers to earlier tasks are dropped.
    """

    def __init__(self, loader: DataLoader[Any], base_seed: int) -> None:
        super().__init__(loader, base_seed)
        job = Job(loader, base_seed)
        self.pool: Any
        if loader.worker == "thread":
            self.pool = ThreadPool(job)
        else:
            self.pool = ProcessPool(job, loader.multiprocessing_context or multiprocessing)
        self.sent = self.awaited = self.first = 0
        self.owners: dict[int, int] = {}  # number -> worker, of tasks without an answer
        self.arrived: dict[int, Any] = {}
        self.active: list[bool] = []
        self.turn = 0

    def _begin(self) -> None:
        loader = self.loader
        if self.sent:
            for worker in range(loader.num_workers):
                self.pool.put(worker, self.sent, None)
        self.first = self.awaited = self.sent
        self.owners.clear()
        self.arrived.clear()
        self.active, self.turn = [True] * loader.num_workers, 0
        for _ in range(loader.num_workers * (loader.prefetch_factor or 1)):
            self._send()

    def _send(self) -> None:
        """Sends the next task to the next active worker."""
        workers = range(self.turn, self.turn + len(self.active))
        worker = next((w % len(self.active) for w in workers if self.active[w % len(workers)]), -1)
        if worker < 0:
            return
        for index in islice(self.indices, 1):
            self.owners[self.sent] = worker
            self.pool.put(worker, self.sent, (index,))
            self.sent += 1
            self.turn = worker + 1

    def _next(self) -> Any:
        try:
            while self.owners or self.arrived:
                worker, answer = self._answer()
                if isinstance(answer, Exhausted):
                    self.active[worker] = False
                self._send()
                if isinstance(answer, Failure):
                    answer.reraise()
                if not isinstance(answer, Exhausted):
                    return answer
        except RuntimeError:
            self.broken = self.pool.closed
            raise
        if not self.loader.persistent_workers:
            self.pool.close()
        raise StopIteration

    def _answer(self) -> tuple[int, Any]:
        """Returns (worker, answer) of the awaited task, or of any task if in_order is False."""
        timeout = self.loader.timeout
        deadline = time.monotonic() + timeout if timeout else None
        while self.awaited not in self.arrived:
            worker = self.owners[self.awaited] if self.loader.in_order else None
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            received = self.pool.get(worker, left)
            if received is None:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            number, answer = received
            if number >= self.first:
                self.arrived[number] = self.owners.pop(number), answer
                if not self.loader.in_order:
                    return self.arrived.pop(number)
        self.awaited += 1
        return self.arrived.pop(self.awaited - 1)

    def __del__(self) -> None:
        if hasattr(self, "pool"):
            self.pool.close()


class _DatasetKind:
    """Kinds of datasets, by PyTorch's names."""

    Map, Iterable = 0, 1


_BaseDataLoaderIter, _SingleProcessDataLoaderIter = LoaderIterator, SingleIterator
_MultiProcessingDataLoaderIter = WorkerIterator
