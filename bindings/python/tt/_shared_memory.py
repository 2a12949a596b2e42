"""Shared memory for batches of a DataLoader and tensors of tt.multiprocessing."""
from __future__ import annotations

import ctypes
import os
import tempfile
from typing import Any
from weakref import WeakValueDictionary

from ._create import imported
from ._positions import note_read
from ._tensor import Tensor
from ._types import BY_NAME

READ_WRITE, MAP_SHARED, MAP_FAILED = 3, 1, ctypes.c_void_p(-1).value


def c_library() -> Any:
    """Returns the library that has mmap; None on Windows, which has no mmap."""
    try:
        found = ctypes.CDLL(None, use_errno=True)
    except TypeError:
        return None
    found.mmap.restype = ctypes.c_void_p
    found.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    found.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return found


libc = c_library()
MUNMAP = getattr(libc, "munmap", None)


def shared_file() -> int:
    """Returns a descriptor of an empty, unnamed file in memory."""
    if libc is None:
        raise OSError("this system has no memory that processes can share by mmap")
    if hasattr(os, "memfd_create"):
        return os.memfd_create("tt-shared")
    with tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as file:
        return os.dup(file.fileno())


class Mapping:
    """A file mapped into memory. It is unmapped when its last tensor is released.

    mmap.mmap would keep a descriptor open, and a process has few.
    """

    def __init__(self, file: int, size: int) -> None:
        self.size = size
        self.address = libc.mmap(None, size, READ_WRITE, MAP_SHARED, file, 0)
        if self.address == MAP_FAILED:
            raise OSError(ctypes.get_errno(), f"mapping {size} bytes of shared memory failed")

    def __del__(self, munmap: Any = MUNMAP) -> None:
        if self.address != MAP_FAILED:
            munmap(self.address, self.size)


class Block(Mapping):
    """Shared memory that can be sent to other processes: it keeps its descriptor open."""

    def __init__(self, file: int, size: int) -> None:
        self.file = file
        super().__init__(file, size)
        blocks[self.address] = self

    def __del__(self, munmap: Any = MUNMAP, close: Any = os.close) -> None:
        super().__del__(munmap)
        close(self.file)


blocks: WeakValueDictionary[int, Block] = WeakValueDictionary()  # by address


def block_of(t: Tensor) -> Block | None:
    """Returns the shared memory of t's storage; None if it is ordinary memory."""
    return blocks.get(t._storage_data())


def over(block: Block, name: str, shape: Any, strides: Any, offset: int) -> Tensor:
    """Returns a tensor of the dtype with this name over shared memory."""
    dtype = BY_NAME[name]
    whole = imported(block.address, dtype, (block.size // dtype.itemsize,), None, True, block)
    return whole.as_strided(shape, strides, offset)


def share(t: Tensor) -> None:
    """Moves the storage of t, a leaf, into shared memory unless it is there already.

    Existing views of t keep the former memory.
    """
    if block_of(t) is not None or not t._storage_bytes():
        return
    if not t.is_cpu or not t.is_leaf:
        raise RuntimeError(
            "share_memory_: self must be on the CPU and a leaf: move it, or detach() it, first"
        )
    note_read()
    size = t._storage_bytes()
    file = shared_file()
    try:
        os.ftruncate(file, size)
        block = Block(file, size)
    except OSError:
        os.close(file)
        raise
    ctypes.memmove(block.address, t._storage_data(), size)
    t._set_data(over(block, t.dtype.name, t.shape, t.stride(), t.storage_offset()))
