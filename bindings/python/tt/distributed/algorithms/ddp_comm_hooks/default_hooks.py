"""Hooks for DistributedDataParallel.register_comm_hook, which runs these in the C library. Hooks of
an application may call them."""
from __future__ import annotations

from copy import copy
from typing import Any, Callable

from ...._types import bfloat16, float16
from ....futures import Future
from ..._bucket import GradBucket

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _mean(process_group: Any, bucket: GradBucket, dtype: Any) -> Future:
    """Starts reducing a bucket to the mean over the group, in messages of a dtype."""
    from ... import ReduceOp, all_reduce

    message = bucket.buffer() if dtype is None else bucket.buffer().to(dtype)
    work: Any = all_reduce(message, ReduceOp.AVG, process_group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Gradients are reduced in their own dtype."""
    return _mean(process_group, bucket, None)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Gradients are communicated as bfloat16."""
    return _mean(process_group, bucket, bfloat16)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Gradients are communicated as float16."""
    return _mean(process_group, bucket, float16)


def _compressed(hook: Callable[[Any, GradBucket], Future], dtype: Any) -> Any:
    """Returns a hook that gives a hook its bucket as a dtype, and gradients in their own again."""

    def compressed(state: Any, bucket: GradBucket) -> Future:
        own = bucket.buffer().dtype
        small = copy(bucket)
        small._buffer = bucket.buffer().to(dtype)
        return hook(state, small).then(lambda future: future.value().to(own))

    return compressed


def bf16_compress_wrapper(hook: Callable[[Any, GradBucket], Future]) -> Any:
    """Returns a hook that calls hook with gradients as bfloat16."""
    return _compressed(hook, bfloat16)


def fp16_compress_wrapper(hook: Callable[[Any, GradBucket], Future]) -> Any:
    """Returns a hook that calls hook with gradients as float16."""
    return _compressed(hook, float16)
