"""RRef: values that a worker owns and others refer to."""
from __future__ import annotations

import threading
import weakref
from functools import partial
from itertools import count
from typing import Any, Callable

from ...futures import Future
from . import _calls as rpc

Key = tuple[int, int]  # (the worker that made the reference, a number of its)

numbers = count(1)
lock = threading.Lock()


class Owned:
    """A value on this worker. references: how many there are to it. created: whether the first one
    has been counted, before which others may come and go."""

    def __init__(self) -> None:
        self.future, self.references, self.created = Future(), 0, False


owned: dict[Key, Owned] = {}


def entry(key: Key) -> Owned:
    with lock:
        return owned.setdefault(key, Owned())


def counted(key: Key, change: int, creates: bool = False) -> Owned:
    """Returns the entry of a value after a change of its number of references. Forgets the value
    after the last one."""
    with lock:
        found = owned.setdefault(key, Owned())
        found.references += change
        found.created = found.created or creates
        if found.created and not found.references:
            del owned[key]
        return found


# ---- what others call on the owner ----


def create(key: Key, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Computes a value for the worker that has called remote()."""
    made = counted(key, 1, creates=True)
    try:
        made.future.set_result(rpc.completed(function, args, kwargs))
    except BaseException as e:  # SystemExit, too: others wait
        made.future.set_exception(rpc.failure(function, e))


def fetch(key: Key) -> Any:
    return entry(key).future.wait()


def call_method(key: Key, name: str, args: Any, kwargs: Any) -> Any:
    return getattr(fetch(key), name)(*args, **kwargs)


def call_remote_method(ref: RRef, name: str, args: Any, kwargs: Any) -> Any:
    return getattr(ref.local_value(), name)(*args, **kwargs)


def add_reference(key: Key) -> None:
    counted(key, 1)


def drop_reference(key: Key) -> None:
    counted(key, -1)


# ---- references ----


class RRef:
    """A reference to a value that a worker owns. RRef(value) makes this worker the owner.

    References travel as arguments and results of calls. The owner keeps the value as long as there
    is one.
    """

    def __init__(self, value: Any, type_hint: Any = None) -> None:
        me = rpc.current().info.id
        key = (me, next(numbers))
        counted(key, 1, creates=True).future.set_result(value)
        self._refer(me, key)

    def _refer(self, owner: int, key: Key) -> RRef:
        """Takes over a reference that has been counted."""
        self._owner, self._key = owner, key
        self._created: Future | None = None
        errand = owner, drop_reference, (key,)
        weakref.finalize(self, rpc.current().errands.put, errand).atexit = False
        return self

    def owner(self) -> rpc.WorkerInfo:
        """Returns the WorkerInfo of the owner."""
        return rpc.current().by_rank[self._owner]

    def owner_name(self) -> str:
        """Returns the name of the owner."""
        return self.owner().name

    def is_owner(self) -> bool:
        """Returns whether this worker is the owner."""
        return self._owner == rpc.current().info.id

    def confirmed_by_owner(self) -> bool:
        """Returns whether the owner has the value, or has failed to compute it."""
        return self._created is None or self._created.done()

    def to_here(self, timeout: float = -1.0) -> Any:
        """Returns the value, a copy of it if another worker is the owner. Raises the error of the
        function that should have computed it."""
        if self.is_owner():
            return fetch(self._key)
        return rpc.rpc_sync(self._owner, fetch, (self._key,), timeout=timeout)

    def local_value(self) -> Any:
        """Returns the value. Raises RuntimeError unless this worker is the owner."""
        if not self.is_owner():
            raise RuntimeError(
                f"RRef.local_value: {self.owner_name()} is the owner: call to_here() for a copy"
            )
        return fetch(self._key)

    def rpc_sync(self, timeout: float = -1.0) -> Methods:
        """Returns an object whose methods are those of the value, called on the owner."""
        return Methods(partial(rpc.rpc_sync, timeout=timeout), self)

    def rpc_async(self, timeout: float = -1.0) -> Methods:
        """Same as rpc_sync, with futures of the results."""
        return Methods(partial(rpc.rpc_async, timeout=timeout), self)

    def remote(self, timeout: float = -1.0) -> Methods:
        """Same as rpc_sync, with references to the results."""
        return Methods(partial(remote, timeout=timeout), self)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Runs backward from the value on its owner; with a context, the distributed one."""
        rpc.rpc_sync(self._owner, run_backward, (self, dist_autograd_ctx_id, retain_graph))

    def __reduce__(self) -> Any:
        if self.is_owner():
            add_reference(self._key)
        else:
            rpc.rpc_sync(self._owner, add_reference, (self._key,))
        return restored, (self._owner, self._key)

    def __repr__(self) -> str:
        kind = "OwnerRRef" if self.is_owner() else "UserRRef"
        return f"{kind}(owner={self._owner}, id={self._key})"


class Methods:
    """The methods of the value of an RRef."""

    def __init__(self, call: Callable[..., Any], ref: RRef) -> None:
        self.call, self.ref = call, ref

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> Any:
            return self.call(self.ref._owner, call_remote_method, (self.ref, name, args, kwargs))

        return method


def restored(owner: int, key: Key) -> RRef:
    """Unpickles an RRef, whose sender has counted the reference."""
    return RRef.__new__(RRef)._refer(owner, key)


def run_backward(ref: RRef, context_id: int, retain_graph: bool) -> None:
    value = ref.local_value()
    if context_id == -1:
        value.backward(retain_graph=retain_graph)
        return
    from ..autograd import backward

    backward(context_id, [value], retain_graph)


def remote(
    to: Any, func: Callable[..., Any], args: Any = None, kwargs: Any = None, timeout: float = -1.0
) -> RRef:
    """Calls func(*args, **kwargs) on a worker, which owns the result. Returns a reference to it at
    once."""
    agent = rpc.current()
    owner = agent.find(to)
    key = (agent.info.id, next(numbers))
    ref = RRef.__new__(RRef)._refer(owner, key)
    given = (key, func, tuple(args or ()), dict(kwargs or {}))
    ref._created = rpc.rpc_async(owner, create, given, timeout=timeout)
    return ref
