"""Python's multiprocessing with shared tensors, with the names of torch.multiprocessing.

A tensor that is sent through a Queue or a Pipe, or passed to a Process, is moved to shared memory:
both processes see each other's writes. Other objects are copied. As in PyTorch, a sender must live
until its objects are received.
"""
from __future__ import annotations

import multiprocessing
import os
from multiprocessing import *  # noqa: F403
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from .._shared_memory import Block, block_of, over, share
from .._tensor import Tensor
from ..nn.parameter import Parameter
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext
from .spawn import spawn, start_processes

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """Returns {"file_descriptor"}: shared memory has no name and is sent as a descriptor."""
    return {STRATEGY}


def get_sharing_strategy() -> str:
    """Returns "file_descriptor"."""
    return STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts "file_descriptor" and "file_system". Has no effect."""
    if new_strategy not in (STRATEGY, "file_system"):
        raise ValueError(
            f"set_sharing_strategy: new_strategy is {new_strategy!r}: must be {STRATEGY!r}"
        )


def reduced(t: Tensor) -> Any:
    """Reduces t for pickling to another process, by the descriptor of its memory."""
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError(
            "multiprocessing: a tensor that requires a gradient and is no leaf cannot be sent: "
            "detach() it first"
        )
    if not t.is_cpu or not t._storage_bytes():
        return t.__reduce__()
    share(t)
    block: Any = block_of(t)
    place = (t.dtype.name, tuple(t.shape), t.stride(), t.storage_offset())
    return rebuilt, (type(t), DupFd(block.file), block.size, place, t.requires_grad)


def rebuilt(cls: type[Tensor], file: Any, size: int, place: Any, requires_grad: bool) -> Tensor:
    """Rebuilds a tensor from the result of reduced()."""
    descriptor = file.detach()
    try:
        block = Block(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return over(block, *place).requires_grad_(requires_grad).as_subclass(cls)


ForkingPickler.register(Tensor, reduced)
ForkingPickler.register(Parameter, reduced)


def __dir__() -> list[str]:
    return __all__
