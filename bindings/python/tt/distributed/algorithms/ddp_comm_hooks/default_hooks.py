"""Hooks for DistributedDataParallel.register_comm_hook, which runs these in the C library. Hooks of
an application may call them."""
from __future__ import annotations

from ...._types import bfloat16, float16

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ....futures import Future
    from ..._bucket import GradBucket

__all__ = ["allreduce_hook", "bf16_compress_hook", "fp16_compress_hook"]


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
