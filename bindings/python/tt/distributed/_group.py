"""Groups of processes and their work, as objects of the C API."""
from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_int32, c_int64, c_void_p
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, Callable

from .._create import frombuffer
from .._dtype_names import uint8
from .._class_name import class_name
from .._lib import Handle, call, finalizer, lib, local, quick
from .._lib import path as library_path
from .._ops import empty
from .._structs import struct
from .._tensor import Tensor
from ..futures import Future

DEFAULT_TIMEOUT = timedelta(minutes=30)
TIMEOUT_SET, LIBRARY_SET = 1, 2


class GroupHandle(Handle):
    """Owns a tt_group."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_group_release)


class WorkHandle(Handle):
    """Owns a tt_work."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_work_release)


class Work:
    """A collective operator or a transfer that was started with async_op=True."""

    def __init__(
        self,
        handle: WorkHandle,
        after: Callable[[], None] | None,
        ranks: list[int],
        used: tuple[Tensor | None, ...],
    ) -> None:
        self.handle, self.after, self.ranks, self.used = handle, after, ranks, used

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until the work is complete. Raises the error of the work, if any."""
        ms = -1 if timeout is None else int(timeout.total_seconds() * 1000)
        call("tt_work_wait", self.handle, c_int64(ms))
        after, self.after = self.after, None
        if after is not None:
            after()
        return True

    def get_future(self) -> WorkFuture:
        """Returns a future of the list of the tensors that the work writes."""
        return WorkFuture(self)

    def tensors(self) -> list[Tensor]:
        """Returns the tensors of the work, the one that it writes last."""
        return [t for t in self.used if t is not None]

    def settle(self) -> None:
        """Waits until the work no longer uses its tensors, complete or failed."""
        lib.tt_work_wait(local.ctx, self.handle, c_int64(-1))

    def source_rank(self) -> int:
        """Waits for a receive and returns the rank that has sent, in the default group."""
        rank = c_int32()
        call("tt_work_source", self.handle, byref(rank))
        return self.ranks[rank.value]

    def is_completed(self) -> bool:
        """Returns whether the work is complete."""
        done = c_int32()
        call("tt_work_test", self.handle, byref(done))
        return bool(done.value)

    def is_success(self) -> bool:
        """Returns whether the work is complete without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        """Returns the error of completed work, else None."""
        if not self.is_completed():
            return None
        try:
            call("tt_work_wait", self.handle, c_int64(-1))
        except RuntimeError as e:
            return e
        return None


class WorkFuture(Future):
    """The future of a work, or, with a callback, of the result of callback(before). It is complete
    when someone has waited for it or asked whether it is done: callbacks run on that thread."""

    def __init__(
        self,
        work: Work,
        before: WorkFuture | None = None,
        callback: Callable[[Future], Any] | None = None,
    ) -> None:
        super().__init__()
        self.work, self.before, self.callback = work, before, callback

    def done(self) -> bool:
        if not super().done() and self.work.is_completed():
            self._resolve()
        return super().done()

    def wait(self) -> Any:
        self._resolve()
        return super().wait()

    def then(self, callback: Callable[[Future], Any]) -> WorkFuture:
        return WorkFuture(self.work, self, callback)

    def _resolve(self) -> None:
        if super().done():
            return
        try:
            if self.before is None or self.callback is None:
                self.work.wait()
                self.set_result(self.work.tensors()[-1:])
            else:
                self.before._resolve()
                self.set_result(self.callback(self.before))
        except Exception as error:
            self.set_exception(error)


class Done(Work):
    """Work that was complete when it was created."""

    def __init__(self) -> None:
        pass

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> Exception | None:
        return None


class ProcessGroup:
    """A group of processes that communicate. ranks: its members as ranks of the default group."""

    def __init__(self, handle: GroupHandle, backend: str, ranks: list[int] | None = None) -> None:
        self.handle, self.backend = handle, backend
        self.ranks = list(range(self.size())) if ranks is None else ranks

    def rank(self) -> int:
        """Returns the rank of this process in the group."""
        return int(quick.tt_group_rank(self.handle))

    def size(self) -> int:
        """Returns the number of processes."""
        return int(quick.tt_group_size(self.handle))

    def name(self) -> str:
        """Returns the name of the backend."""
        return self.backend

    def split(self, color: int, key: int) -> GroupHandle | None:
        """Returns the group of all ranks with the same color, ordered by key. None if color is
        negative."""
        handle = GroupHandle.__new__(GroupHandle)
        call("tt_group_split", self.handle, c_int64(color), c_int64(key), byref(handle))
        return handle if handle._address else None

    def start(
        self,
        function: str,
        tensors: tuple[Tensor | None, ...],
        *numbers: int,
        wait: bool,
        after: Callable[[], None] | None = None,
    ) -> Work | None:
        """Starts the work of a C function, tt_group_…, on tensors and numbers.

        wait: waits for the work and returns None. after: called once the work is complete.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                op = function[len("tt_group_") :]
                raise TypeError(f"{op}(): takes Tensors, not {class_name(t)}")
        args = (*tensors, *map(c_int32, numbers))
        if wait:
            call(function, self.handle, *args, None)
            if after is not None:
                after()
            return None
        handle = WorkHandle.__new__(WorkHandle)
        call(function, self.handle, *args, byref(handle))
        return Work(handle, after, self.ranks, tensors)


def tensor_of_bytes(data: bytes) -> Tensor:
    """Returns bytes as a tensor."""
    return frombuffer(bytearray(data), dtype=uint8) if data else empty(0, dtype=uint8)


def bytes_of(t: Tensor) -> bytes:
    """Returns the bytes of a dense tensor."""
    return ctypes.string_at(t.data_ptr(), t.numel()) if t.numel() else b""


def nccl_of_pip() -> str | None:
    """Returns the path of pip's NCCL, or None if it is not installed."""
    try:
        spec = find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return None
    for folder in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(folder, "lib", "libnccl.so.2")
        if os.path.exists(path):
            return path
    return None


def library_of(backend: str) -> str | None:
    """Returns the path of a backend's library, or None if the loader has to search for it."""
    if backend == "nccl":
        return nccl_of_pip()
    path = os.path.join(os.path.dirname(os.path.realpath(library_path)), f"libtt_{backend}.so")
    return path if os.path.exists(path) else None


def is_there(backend: str) -> bool:
    """Returns whether the library of a backend can be loaded."""
    try:
        name = "libnccl.so.2" if backend == "nccl" else f"libtt_{backend}.so"
        ctypes.CDLL(library_of(backend) or name)
    except OSError:
        return False
    return True


def connect(
    backend: str, rank: int, size: int, rendezvous: str, timeout: timedelta | None
) -> GroupHandle:
    """Creates a group. rank and size are -1 if the backend determines them."""
    ms = int((timeout or DEFAULT_TIMEOUT).total_seconds() * 1000)
    path = library_of(backend)
    options = struct("tt_group_opts")()
    options.set = TIMEOUT_SET
    options.timeout_ms = ms
    if path is not None:
        options.set |= LIBRARY_SET
        options.library = path.encode()
    handle = GroupHandle.__new__(GroupHandle)
    call(
        "tt_group_new",
        backend.encode(),
        c_int32(rank),
        c_int32(size),
        rendezvous.encode(),
        byref(options),
        byref(handle),
    )
    return handle
