"""The workers of a DataLoader and the transfer of their batches.

A process receives tasks over a socket and answers each with a file descriptor of a shared-memory
file. The file contains the elements of the tensors, which the caller's tensors share, followed by
the pickled batch. It has no name, so it does not outlive the processes.
"""
from __future__ import annotations

import ctypes
import os
import pickle
import queue
import random
import signal
import sys
import threading
import time
import traceback
from array import array
from contextlib import suppress
from io import BytesIO
from multiprocessing import connection, parent_process
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, Callable, Iterator, NoReturn

from ... import _handles
from ... import _ops as ops
from ..._create import from_bytes, imported
from ..._shared_memory import Mapping, shared_file
from ..._tensor import Tensor
from ..._types import BY_NAME, int64
from ...random import default_generator, manual_seed
from .collate import default_collate
from .dataset import Subset, TensorDataset, samples_of

ALIGNMENT = 64  # bytes
WATCH_SECONDS = 5.0  # how often an idle worker looks whether its parent lives
JOIN_SECONDS = 5.0  # what workers have to end by themselves
parent_ends: Any = set()  # the callers' ends of all sockets, which forked workers close


class WorkerInfo:
    """The result of get_worker_info() in a worker.

    id: number of the worker. num_workers: number of workers. seed: seed of its random numbers.
    dataset: its copy of the dataset; in a thread, the dataset itself.
    """

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


class Current(threading.local):
    info: WorkerInfo | None = None


current = Current()


def get_worker_info() -> WorkerInfo | None:
    """Returns the WorkerInfo of the calling worker; None outside of workers."""
    return current.info


class Failure:
    """An exception in a worker, with its traceback as text."""

    def __init__(self, where: str, error: BaseException) -> None:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        self.text = f"Caught {type(error).__name__} {where}.\nOriginal {''.join(lines)}"
        self.kind: Any = type(error)
        try:
            pickle.dumps(self.kind)
        except Exception:
            self.kind = RuntimeError

    def reraise(self) -> None:
        """Raises an exception of the same type, or RuntimeError if its type takes no message."""
        kind: Any = self.kind
        if issubclass(kind, StopIteration):  # would end the caller's loop
            kind = RuntimeError
        try:
            error = kind(Lines(self.text) if issubclass(kind, KeyError) else self.text)
        except Exception:
            error = RuntimeError(self.text)
        raise error from None


class Lines(str):
    """A string that KeyError shows verbatim instead of its repr."""

    def __repr__(self) -> str:
        return self


class Exhausted:
    """The answer of a worker whose IterableDataset has ended."""


class Job:
    """The arguments of a loader's workers, picklable for processes that are not forked."""

    def __init__(self, loader: Any, base_seed: int) -> None:
        self.dataset, self.collate_fn = loader.dataset, loader.collate_fn
        self.iterable, self.batched = loader._iterable, loader._auto_collation
        self.drop_last, self.num_workers = loader.drop_last, loader.num_workers
        self.init, self.base_seed = loader.worker_init_fn, base_seed

    def fetcher(self) -> Callable[[Any], Any]:
        """Returns the function that makes a batch from indices."""
        if self.iterable:
            return StreamFetcher(self)
        return self.fetch

    def fetch(self, index: Any) -> Any:
        if not self.batched:
            return self.collate_fn(self.dataset[index])
        rows = self._rows(index)
        if rows is not None:
            return rows
        return self.collate_fn(samples_of(self.dataset, index))

    def _rows(self, indices: Any) -> Any:
        """Returns the batch of a TensorDataset or of Subsets of one, with one gather per tensor.

        The result equals that of default_collate. None if the batch must be made sample by sample.
        """
        dataset = self.dataset
        if self.collate_fn is not default_collate:
            return None
        while type(dataset) is Subset:
            indices, dataset = [dataset.indices[i] for i in indices], dataset.dataset
        if type(dataset) is not TensorDataset or not indices:
            return None
        if any(type(i) is not int for i in indices) or min(indices) < 0:
            return None
        where = from_bytes(array("q", indices), int64, (len(indices),))
        return [ops.index_select(t, 0, where.to(t.device)) for t in dataset.tensors]


class StreamFetcher:
    """Makes batches of an IterableDataset. Raises StopIteration at its end."""

    def __init__(self, job: Job) -> None:
        self.job, self.ended = job, False
        self.samples: Iterator[Any] = iter(job.dataset)

    def __call__(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        job = self.job
        if not job.batched:
            return job.collate_fn(next(self.samples))
        batch = []
        for _ in index:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                self.ended = True
                break
        if not batch or (job.drop_last and len(batch) < len(index)):
            raise StopIteration
        return job.collate_fn(batch)


class Answers:
    """Answers the tasks of a worker, in a process or a thread.

    A task is an index of the index sampler, or None to start another epoch.
    """

    def __init__(self, job: Job, worker: int, where: str) -> None:
        self.job, self.worker = job, worker
        self.where = f"in DataLoader worker {where} {worker}"
        seed = (job.base_seed + worker) % 2**63
        current.info = WorkerInfo(worker, job.num_workers, seed, job.dataset)
        self.fetch: Any = None
        self.failure: Failure | None = None
        try:
            if job.init is not None:
                job.init(worker)
        except Exception as error:
            self.failure = Failure(self.where, error)

    def answer(self, task: Any) -> Any:
        """Returns the batch of a task, a Failure or Exhausted."""
        if self.failure is not None:
            return self.failure
        try:
            if self.fetch is None:
                self.fetch = self.job.fetcher()
            return self.fetch(task)
        except StopIteration as error:
            return Exhausted() if self.job.iterable else Failure(self.where, error)
        except Exception as error:
            return Failure(self.where, error)

    def restart(self) -> None:
        """Starts another epoch."""
        self.fetch = None


# ---- processes ----


def seed_process(base_seed: int, worker: int) -> None:
    """Seeds the generators of tt, Python and, if it is imported, NumPy in this worker."""
    seed = (base_seed + worker) % 2**63
    random.seed(seed)
    manual_seed(seed)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        entropy = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(entropy).generate_state(4))


def process_main(job: Job | None, worker: int, end: connection.Connection) -> None:
    """Answers tasks until the caller closes its end of the socket or dies.

    job: None in a process that is not forked, which then receives the job first.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides what Ctrl-C means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in list(parent_ends):  # else siblings would not see the caller's end closed
        other.close()
    parent_ends.clear()
    try:
        job = job or end.recv()
        _handles.set_num_threads(1)
        seed_process(job.base_seed, worker)
        answers = Answers(job, worker, "process")
        for number, task in tasks(end):
            if task is None:
                answers.restart()
            else:
                send(end, number, answers.answer(task[0]), answers.where)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the caller needs no more batches


def tasks(end: connection.Connection) -> Iterator[Any]:
    parent, pid = parent_process(), os.getppid()
    while True:
        while not end.poll(WATCH_SECONDS):
            if os.getppid() != pid or not (parent and parent.is_alive()):
                return
        yield end.recv()


class BatchPickler(pickle.Pickler):
    """Pickles a batch without the elements of plain CPU tensors, which it collects separately."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.parts: list[Any] = []  # tensors and padding, in the order of the file
        self.size = 0

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not Tensor or not obj.is_cpu or not obj.numel() or obj._attributes():
            return None
        source = obj.detach().contiguous()
        place = self.size
        padding = -source.nbytes % ALIGNMENT
        self.parts += [source, bytes(padding)]
        self.size += source.nbytes + padding
        return place, obj.dtype.name, tuple(obj.shape), obj.requires_grad


def send(end: connection.Connection, number: int, answer: Any, where: str) -> None:
    """Sends an answer: (number, size of the tensors, size of the file), then the file."""
    try:
        text = BytesIO()
        pickler = BatchPickler(text)
        pickler.dump(answer)
    except Exception as error:  # not picklable
        text = BytesIO()
        pickler = BatchPickler(text)
        pickler.dump(Failure(where, error))
    parts = [
        (ctypes.c_char * x.nbytes).from_address(x.data_ptr()) if isinstance(x, Tensor) else x
        for x in pickler.parts
    ]
    total = pickler.size + len(text.getbuffer())
    file = shared_file()
    try:
        for part in (*parts, text.getbuffer()):
            write_all(file, memoryview(part).cast("B"))
        end.send((number, pickler.size, total))
        send_handle(end, file, os.getppid())
    finally:
        os.close(file)


def write_all(file: int, data: memoryview) -> None:
    while data:
        data = data[os.write(file, data) :]


class BatchUnpickler(pickle.Unpickler):
    def __init__(self, text: bytes, mapping: Mapping | None) -> None:
        super().__init__(BytesIO(text))
        self.mapping = mapping

    def persistent_load(self, pid: Any) -> Any:
        place, name, shape, requires_grad = pid
        assert self.mapping is not None
        address = self.mapping.address + place
        tensor = imported(address, BY_NAME[name], shape, None, True, self.mapping)
        return tensor.requires_grad_() if requires_grad else tensor


def receive(end: connection.Connection) -> tuple[int, Any]:
    """Returns (number of the task, answer)."""
    number, tensors, total = end.recv()
    file = recv_handle(end)
    try:
        mapping = Mapping(file, tensors) if tensors else None
        text = b""
        while len(text) < total - tensors:
            more = os.pread(file, total - tensors - len(text), tensors + len(text))
            if not more:
                raise EOFError
            text += more
    finally:
        os.close(file)
    return number, BatchUnpickler(text, mapping).load()


class ProcessPool:
    """The worker processes of a loader and the caller's ends of their sockets."""

    def __init__(self, job: Job, context: Any) -> None:
        self.pid, self.closed = os.getpid(), False
        self.ends: list[Any] = []
        self.processes: list[Any] = []
        try:
            for worker in range(job.num_workers):
                self._start(job, worker, context)
        except BaseException:
            self.close()
            raise

    def _start(self, job: Job, worker: int, context: Any) -> None:
        end, other = context.Pipe(duplex=True)
        self.ends.append(end)
        parent_ends.add(end)
        forked = context.get_start_method() == "fork"
        args = (job if forked else None, worker, other)
        process = context.Process(target=process_main, args=args, daemon=True)
        try:
            process.start()
            self.processes.append(process)
        finally:
            other.close()
        if not forked:  # start() would wait for ever for a worker that died before it read the job
            try:
                end.send(job)
            except ConnectionError:
                self._died(worker)

    def put(self, worker: int, number: int, task: Any) -> None:
        """Sends a task to a worker."""
        try:
            self.ends[worker].send((number, task))
        except OSError:
            self._died(worker)

    def get(self, worker: int | None, timeout: float | None) -> tuple[int, Any] | None:
        """Returns (number, answer) of a worker, by default of any. None if the timeout expires.

        Raises RuntimeError if the worker has died.
        """
        workers = range(len(self.ends)) if worker is None else (worker,)
        ends = {self.ends[w]: w for w in workers}
        sentinels = {self.processes[w].sentinel: w for w in workers}
        ready = connection.wait([*ends, *sentinels], timeout)
        for end in ready:
            if end in ends:
                return self._received(ends[end])
        for sentinel in ready:
            w = sentinels[sentinel]
            return self._received(w) if self.ends[w].poll(0) else self._died(w)
        return None

    def _received(self, worker: int) -> tuple[int, Any]:
        try:
            return receive(self.ends[worker])
        except (EOFError, ConnectionError):
            self._died(worker)

    def _died(self, worker: int) -> NoReturn:
        process = self.processes[worker]
        process.join(JOIN_SECONDS)
        code, pid = process.exitcode, process.pid
        self.close()
        why = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        raise RuntimeError(f"DataLoader worker {worker} (pid {pid}) exited unexpectedly: {why}")

    def close(self) -> None:
        """Ends the workers. Those that do not exit by themselves are terminated, then killed."""
        if self.closed or os.getpid() != self.pid:  # a forked child has a copy of this object
            return
        self.closed = True
        for end in self.ends:
            parent_ends.discard(end)
            end.close()
        running = self.processes
        for stop in (None, "terminate", "kill"):
            for process in running:
                if stop:
                    getattr(process, stop)()
            join_all(running)
            running = [process for process in running if process.is_alive()]


# ---- threads ----


def thread_main(job: Job, worker: int, inbox: Any, outbox: Any) -> None:
    """Answers tasks until it receives None instead of one."""
    default_generator.manual_seed((job.base_seed + worker) % 2**63)
    answers = Answers(job, worker, "thread")
    while True:
        item = inbox.get()
        if item is None:
            return
        number, task = item
        if task is None:
            answers.restart()
            continue
        try:
            outbox.put((number, answers.answer(task[0])))
        except BaseException as error:  # such as SystemExit, which would end the thread
            outbox.put((number, Failure(answers.where, error)))


class ThreadPool:
    """The worker threads of a loader."""

    def __init__(self, job: Job) -> None:
        self.closed = False
        self.outbox: Any = queue.SimpleQueue()
        self.inboxes: list[Any] = [queue.SimpleQueue() for _ in range(job.num_workers)]
        self.threads = [
            threading.Thread(target=thread_main, args=(job, i, inbox, self.outbox), daemon=True)
            for i, inbox in enumerate(self.inboxes)
        ]
        for thread in self.threads:
            thread.start()

    def put(self, worker: int, number: int, task: Any) -> None:
        """Sends a task to a worker."""
        self.inboxes[worker].put((number, task))

    def get(self, worker: int | None, timeout: float | None) -> tuple[int, Any] | None:
        """Returns (number, answer) of any worker. None if the timeout expires."""
        try:
            return self.outbox.get(timeout=timeout)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Ends the workers after their current tasks."""
        if self.closed:
            return
        self.closed = True
        for inbox in self.inboxes:
            with suppress(queue.Empty):
                while True:
                    inbox.get_nowait()
            inbox.put(None)
        join_all([t for t in self.threads if t is not threading.current_thread()])


def join_all(workers: list[Any]) -> None:
    """Waits until the workers have ended, for at most JOIN_SECONDS."""
    deadline = time.monotonic() + JOIN_SECONDS
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
