"""Buckets of gradients, and the hooks of an application that reduce them."""
from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, c_int32, c_void_p
from typing import Any, Callable

from .._hooks import guarded, optional_tensors
from .._lib import for_good, kept
from .._structs import struct
from .._tensor import Tensor, borrow
from ..futures import Future
from ._group import WorkFuture


class GradBucket:
    """Gradients that backward has filled and that are reduced together."""

    def __init__(self, raw: Any) -> None:
        n = raw.num_parameters
        self._index, self._is_last = raw.index, raw.index + 1 == raw.num_buckets
        self._buffer = borrow(raw.buffer)
        addresses = c_void_p * n
        self._gradients = optional_tensors(addresses.from_address(raw.gradients), n)
        self._parameters = optional_tensors(addresses.from_address(raw.parameters), n)

    def index(self) -> int:
        """Returns the number of the bucket, in the order in which backward fills them."""
        return self._index

    def is_last(self) -> bool:
        """Returns whether this is the last bucket of a backward."""
        return self._is_last

    def buffer(self) -> Tensor:
        """Returns the gradients as a tensor of one dimension."""
        return self._buffer

    def set_buffer(self, tensor: Tensor) -> None:
        """Replaces the gradients."""
        if tensor.shape != self._buffer.shape:
            raise ValueError(
                f"set_buffer: the tensor is {list(tensor.shape)}: must be "
                f"{list(self._buffer.shape)}, as the bucket"
            )
        self._buffer.copy_(tensor)

    def gradients(self) -> list[Tensor]:
        """Returns views of the buffer with the shapes of the parameters."""
        return list(self._gradients)  # type: ignore[arg-type]

    def parameters(self) -> list[Tensor]:
        """Returns the parameters of the gradients."""
        return list(self._parameters)  # type: ignore[arg-type]


class BucketHook:
    """A hook of DistributedDataParallel: hook(state, bucket) returns a future of the gradients."""

    def __init__(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        self.state, self.hook = state, hook
        self.running: dict[int, tuple[GradBucket, Future]] = {}

    def start(self, raw: Any) -> None:
        bucket = GradBucket(raw)
        future = self.hook(self.state, bucket)
        if not isinstance(future, Future):
            raise TypeError(
                f"a communication hook must return a Future, not {type(future).__name__}"
            )
        self.running[bucket.index()] = bucket, future

    def finish(self, raw: Any) -> None:
        bucket, future = self.running.pop(raw.index)
        if raw.failed:
            if isinstance(future, WorkFuture):
                future.work.settle()
            return
        value = future.wait()
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
        if not isinstance(value, Tensor):
            raise TypeError(
                f"the future of a communication hook must have a Tensor, not {type(value).__name__}"
            )
        if value.data_ptr() != bucket.buffer().data_ptr():
            bucket.set_buffer(value)


HOOK = CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(struct("tt_ddp_bucket")))
START = for_good(HOOK(lambda user, ctx, raw: guarded(lambda: kept[user].start(raw[0]))))
FINISH = for_good(HOOK(lambda user, ctx, raw: guarded(lambda: kept[user].finish(raw[0]))))
