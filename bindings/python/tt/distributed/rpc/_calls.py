"""Calls of functions on other workers.

Functions are sent by name, so all workers must be able to import them. Arguments and results,
including tensors, are pickled: all workers must be trusted. Each pair of workers has a group of
two.
"""
from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import timedelta
from itertools import count
from queue import SimpleQueue
from typing import Any, Callable

from ... import _ops as ops
from ..._create import tensor as tensor_of
from ..._structs import CONSTANTS
from ..._tensor import Tensor
from ..._types import BY_NAME
from ...errors import DistributedError
from ...futures import Future
from .._group import ProcessGroup, bytes_of, connect, tensor_of_bytes
from ..rendezvous import place_of

DEFAULT_TIMEOUT = 60.0  # seconds of a call
FOR_EVER = timedelta(days=365)  # a listener waits for calls as long as its peer lives
REQUEST, RESULT, ERROR, STOP = range(4)
SUM = CONSTANTS["TT_REDUCE_SUM"]
BYTES, NUMBERS = BY_NAME["uint8"], BY_NAME["int64"]
THREADS = 16  # calls of others that run at the same time


class WorkerInfo:
    """A worker: its name and its rank, `id`."""

    def __init__(self, name: str, rank: int) -> None:
        self.name, self.id = name, rank

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


class RpcFuture(Future):
    """The future of rpc_async: wait() returns the result or raises the error of the call."""

    def __init__(self, what: str, timeout: float) -> None:
        super().__init__()
        self.what, self.timeout = what, timeout

    def wait(self) -> Any:
        """Waits for the result, at most for the timeout of the call."""
        try:
            return self._future.result(self.timeout or None)
        except FutureTimeout:
            raise DistributedError(f"{self.what} has not ended within {self.timeout} s") from None


def mapped(future: RpcFuture, change: Callable[[Any], Any]) -> RpcFuture:
    """Returns a future of change(the result)."""
    following = RpcFuture(future.what, future.timeout)

    def follow(done: Any) -> None:
        try:
            following.set_result(change(done.value()))
        except Exception as error:
            following.set_exception(error)

    future.add_done_callback(follow)
    return following


def completed(function: Any, args: Any, kwargs: Any) -> Any:
    """Returns function(*args, **kwargs), or the value of the future that an async_execution
    returns."""
    result = function(*args, **kwargs)
    return result.wait() if getattr(function, "_returns_future", False) else result


def failure(function: Any, error: BaseException) -> DistributedError:
    """Returns the error of a function that has failed here, for its callers."""
    name = getattr(function, "__qualname__", repr(function))
    where = current().info.name
    return DistributedError(f"rpc: {name} on {where} has failed: {type(error).__name__}: {error}")


class Peer:
    """Another worker, and the thread that receives its messages."""

    def __init__(self, agent: Agent, info: WorkerInfo, pair: ProcessGroup) -> None:
        self.agent, self.info, self.pair = agent, info, pair
        self.to = 1 - pair.rank()
        self.sending, self.numbers = threading.Lock(), count(1)
        self.calls: dict[int, RpcFuture] = {}
        self.lost: Exception | None = None
        self.thread = threading.Thread(target=self.listen, daemon=True)

    def send(self, kind: int, number: int, message: bytes) -> None:
        head = tensor_of([kind, number, len(message)])
        body = tensor_of_bytes(message)
        with self.sending:
            self.pair.start("tt_group_send", (head,), self.to, 0, wait=True)
            self.pair.start("tt_group_send", (body,), self.to, 0, wait=True)

    def receive(self, t: Tensor) -> Tensor:
        self.pair.start("tt_group_recv", (t,), self.to, 0, wait=True)
        return t

    def listen(self) -> None:
        """Receives requests and results until the worker ends."""
        try:
            while True:
                head = self.receive(ops.zeros(3, dtype=NUMBERS)).tolist()
                kind, number, n = head
                body = bytes_of(self.receive(ops.zeros(n, dtype=BYTES)))
                if kind == STOP:
                    return
                if kind == REQUEST:
                    self.agent.pool.submit(self.answer, number, body)
                else:
                    self.resolve(number, kind, body)
        except Exception as e:  # whoever waits must hear of it
            with self.agent.changed:
                self.lost = e
                left, self.calls = self.calls, {}
            for future in left.values():
                future.set_exception(
                    DistributedError(f"{future.what}: {self.info.name} has failed: {e}")
                )
                self.agent.end_call()

    def answer(self, number: int, body: bytes) -> None:
        try:
            function, args, kwargs = pickle.loads(body)
            kind, message = RESULT, pickle.dumps(completed(function, args, kwargs))
        except BaseException as e:  # SystemExit, too: the caller waits
            kind, message = ERROR, pickle.dumps(f"{type(e).__name__}: {e}")
        try:
            self.send(kind, number, message)
        except RuntimeError:
            pass  # the caller has gone

    def resolve(self, number: int, kind: int, body: bytes) -> None:
        future = self.take(number)
        if future is None:
            return
        try:
            value = pickle.loads(body)
        except Exception as e:
            kind, value = ERROR, f"its result cannot be read: {type(e).__name__}: {e}"
        if kind == RESULT:
            future.set_result(value)
        else:
            future.set_exception(DistributedError(f"{future.what} has failed: {value}"))
        self.agent.end_call()

    def take(self, number: int) -> RpcFuture | None:
        """Returns the future of a call, to the first that asks, which completes it and ends the
        call; None to others."""
        with self.agent.changed:
            return self.calls.pop(number, None)

    def call(self, function: Any, args: Any, kwargs: Any, timeout: float) -> RpcFuture:
        name = getattr(function, "__qualname__", repr(function))
        future = RpcFuture(f"rpc: {name} on {self.info.name}", timeout)
        message = pickle.dumps((function, args or (), kwargs or {}))
        number = next(self.numbers)
        with self.agent.changed:
            lost = self.lost
            if lost is None:
                self.calls[number] = future
                self.agent.begun += 1
                self.agent.pending += 1
        if lost is not None:
            future.set_exception(
                DistributedError(f"{future.what}: {self.info.name} has failed: {lost}")
            )
            return future
        try:
            self.send(REQUEST, number, message)
        except RuntimeError as e:
            if self.take(number) is not None:
                future.set_exception(DistributedError(f"{future.what}: {e}"))
                self.agent.end_call()
        return future


class Agent:
    """This worker: its peers by rank and by name.

    begun, pending: how many calls this worker has begun on others, and how many of them have not
    ended, those too that were given up after their timeout. The condition `changed` guards them.
    errands: calls that finalizers want, as (worker, function, args). A finalizer may run amid a
    message of its thread, so that another thread, `runner`, sends them. None ends it.
    """

    def __init__(self, name: str, world: ProcessGroup, timeout: float) -> None:
        self.world, self.timeout = world, timeout
        self.pool = ThreadPoolExecutor(THREADS)
        self.changed = threading.Condition()
        self.begun = self.pending = 0
        self.errands: SimpleQueue[Any] = SimpleQueue()
        self.runner = threading.Thread(target=self.run_errands, daemon=True)
        rank, size = world.rank(), world.size()
        names = self.exchange_names(name)
        self.info = WorkerInfo(name, rank)
        self.infos = {n: WorkerInfo(n, r) for r, n in enumerate(names)}
        self.by_rank = list(self.infos.values())
        self.peers: dict[int, Peer] = {}
        pairs = {}
        for a in range(size):
            for b in range(a + 1, size):
                inside = rank in (a, b)
                handle = world.split(0 if inside else -1, rank)
                if handle is not None:
                    pairs[a + b - rank] = ProcessGroup(handle, world.backend)
        for other, pair in pairs.items():
            self.peers[other] = Peer(self, self.infos[names[other]], pair)

    def start(self) -> None:
        """Starts the threads. What others call finds the agent in its place."""
        self.runner.start()
        for peer in self.peers.values():
            peer.thread.start()

    def run_errands(self) -> None:
        """Makes the calls of `errands`, one after the other."""
        while True:
            errand = self.errands.get()
            if errand is None:
                return
            to, function, args = errand
            if to == self.info.id:
                function(*args)
            else:
                self.peers[to].call(function, args, None, self.timeout)

    def end_call(self) -> None:
        """Notes that a call has ended and that the callbacks of its future have run."""
        with self.changed:
            self.pending -= 1
            self.changed.notify_all()

    def await_all_calls(self) -> None:
        """Waits until no worker has a pending call. All workers must call this.

        In each round, a worker tells how many calls it has begun, once none of them is pending. If
        the sum does not change, no worker has begun a call between its two answers. So none was
        pending anywhere at the end of the first round, and only a call could begin another.
        """
        before = -1
        while True:
            with self.changed:
                self.changed.wait_for(lambda: not self.pending)
                begun = tensor_of([self.begun])
            self.world.start("tt_group_all_reduce", (begun,), SUM, wait=True)
            if begun.item() == before:
                return
            before = begun.item()

    def exchange_names(self, name: str) -> list[str]:
        """Returns the names of all workers. Raises an error if two are equal."""
        data = name.encode()[:256]
        mine = tensor_of_bytes(data.ljust(256, b"\0"))
        whole = ops.zeros((self.world.size(), 256), dtype=BYTES)
        self.world.start("tt_group_all_gather", (mine, whole), wait=True)
        names = [bytes_of(row).rstrip(b"\0").decode() for row in whole]
        if len(set(names)) != len(names):
            raise DistributedError(f"init_rpc: the names of the workers are not different: {names}")
        return names

    def find(self, to: Any) -> int:
        if isinstance(to, WorkerInfo):
            return to.id
        if isinstance(to, int) and 0 <= to < self.world.size():
            return to
        if to not in self.infos:
            raise ValueError(f"rpc: there is no worker {to!r}: they are {', '.join(self.infos)}")
        return self.infos[to].id


agent: Agent | None = None  # this worker, while it is connected


def current() -> Agent:
    if agent is None:
        raise RuntimeError("rpc: call init_rpc first")
    return agent


def init_rpc(
    name: str,
    backend: Any = None,
    rank: int = -1,
    world_size: int = -1,
    rpc_backend_options: Any = None,
    *,
    init_method: str | None = None,
    rpc_timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Connects this worker with the others and starts answering their calls.

    name: name of this worker, which must be unique. backend: "gloo", the default.
    init_method, rank, world_size: as in init_process_group.
    rpc_timeout: default timeout of a call in seconds.
    """
    global agent
    if agent is not None:
        raise RuntimeError("init_rpc: this worker is connected already")
    used = backend if isinstance(backend, str) else "gloo"
    size, place, rendezvous = place_of(used, init_method, world_size, rank)
    handle = connect(used, place, size, rendezvous, FOR_EVER)
    agent = Agent(name, ProcessGroup(handle, used), rpc_timeout)
    agent.start()


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """Returns the WorkerInfo of a worker, by default this one."""
    a = current()
    return a.info if worker_name is None else a.infos[worker_name]


def rpc_async(
    to: Any, func: Callable[..., Any], args: Any = None, kwargs: Any = None, timeout: float = -1.0
) -> RpcFuture:
    """Calls func(*args, **kwargs) on a worker, given by name, rank or WorkerInfo.

    timeout: in seconds; -1: the default of init_rpc; 0: no timeout.
    """
    a = current()
    seconds = a.timeout if timeout < 0 else timeout
    rank = a.find(to)
    if rank != a.info.id:
        from .. import autograd

        context = autograd.current.context
        if context is not None:
            return autograd.call(context, rank, func, args, kwargs, timeout)
        return a.peers[rank].call(func, args, kwargs, seconds)
    future = RpcFuture(f"rpc: {getattr(func, '__qualname__', func)} on {a.info.name}", seconds)
    try:
        future.set_result(completed(func, args or (), kwargs or {}))
    except Exception as e:
        future.set_exception(e)
    return future


def rpc_sync(
    to: Any, func: Callable[..., Any], args: Any = None, kwargs: Any = None, timeout: float = -1.0
) -> Any:
    """Same as rpc_async, but waits for the result and returns it."""
    return rpc_async(to, func, args, kwargs, timeout).wait()


def shutdown(graceful: bool = True, timeout: float = 0) -> None:
    """Disconnects this worker. graceful: first waits until all workers have called shutdown and
    all calls have ended, those too for which nobody waits."""
    global agent
    a = current()
    if graceful:
        a.world.start("tt_group_barrier", (), wait=True)
        a.errands.put(None)
        a.runner.join()
        # A worker that has stopped listening would leave those that still send to it waiting.
        a.await_all_calls()
        for peer in a.peers.values():
            try:
                peer.send(STOP, 0, b"")
            except RuntimeError:
                pass  # it has gone
        for peer in a.peers.values():
            peer.thread.join()
    else:
        a.errands.put(None)
    a.pool.shutdown(wait=graceful)
    agent = None
