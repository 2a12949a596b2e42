"""DistributedDataParallel: the same model in each process, with averaged gradients."""
from __future__ import annotations

from contextlib import contextmanager
from ctypes import byref, c_int32, c_void_p
from typing import Any, Iterator

from ..._lib import Handle, call, drop, finalizer, keep, quick
from ..._structs import struct
from ..._types import bfloat16, float16
from ...errors import UnimplementedError
from ...distributed._bucket import FINISH, START, BucketHook
from ...distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
    bf16_compress_hook,
    fp16_compress_hook,
)
from ..module import Module
from ._tree import tree_of
from .wrapper import Wrapper

MEGABYTE = 1 << 20
BUCKET_BYTES, BROADCAST_BUFFERS, FIND_UNUSED, COMPRESSION = 1, 2, 4, 8
COMPRESSIONS = {allreduce_hook: None, bf16_compress_hook: bfloat16, fp16_compress_hook: float16}


class DdpHandle(Handle):
    """Owns a tt_ddp."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_ddp_release)


class DistributedDataParallel(Wrapper):
    """Calls the module; backward replaces the gradients by their mean over all processes.

    Gradients are views of buckets, which a tt thread reduces during backward; the end of backward
    waits for it. The parameters and buffers of rank 0 replace those of the other ranks. Raises
    ValueError before tt.distributed.init_process_group. As in PyTorch, names in state_dict() begin
    with "module.".

    broadcast_buffers: copies the buffers of rank 0 before each forward in training mode.
    bucket_cap_mb: megabytes of a bucket, by default 25, at most 1 for the first. The parameter that
        fills a bucket is its last one.
    find_unused_parameters: False: backward raises AutogradError if a parameter has no gradient.
        True: missing gradients count as zeros, unless they are missing on all ranks.
    device_mesh: a mesh of one dimension, instead of process_group.
    The other arguments are accepted and change nothing; those that would are errors.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = True,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        lazy_bucket_allocation: bool = False,
    ) -> None:
        from ... import distributed

        for name, value in (
            ("init_sync=False", not init_sync),
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
            ("mixed_precision: use tt.autocast", mixed_precision),
        ):
            if value:
                raise UnimplementedError(f"DistributedDataParallel: tt has no {name}")
        if forward_sync_buffers is not None:
            broadcast_buffers = forward_sync_buffers
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError(
                    "DistributedDataParallel: takes either process_group or device_mesh"
                )
            process_group = device_mesh.get_group()
        if any(getattr(m, "sparse", False) is True for m in module.modules()):
            raise UnimplementedError(
                "DistributedDataParallel: a layer has sparse=True: sparse gradients are not reduced"
            )
        super().__init__(module)
        self.process_group = distributed.checked(process_group, "DistributedDataParallel")
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel: no parameter of module requires a gradient"
            )
        self.dim, self.device_ids = dim, device_ids
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self._bucket_bytes = int((bucket_cap_mb or 25) * MEGABYTE)
        self._watch(None)

    def _watch(self, compression: Any) -> None:
        """Starts reducing the module's gradients in messages of a dtype."""
        self._handle: Any = None  # one at a time
        options = struct("tt_ddp_opts")()
        options.set = BUCKET_BYTES | BROADCAST_BUFFERS | FIND_UNUSED
        options.bucket_bytes = self._bucket_bytes
        options.broadcast_buffers = self.broadcast_buffers
        options.find_unused_parameters = self.find_unused_parameters
        if compression is not None:
            options.set |= COMPRESSION
            options.compression = compression.code
        handle = DdpHandle.__new__(DdpHandle)
        group, tree = self.process_group.handle, tree_of(self.module)
        call("tt_ddp_new", tree, group, byref(options), byref(handle))
        self._handle = handle

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Lets a hook reduce the gradients. All ranks must call it, and call the same collectives
        in their hooks.

        hook: hook(state, bucket) is called with a tt.distributed.GradBucket during backward, and
            returns a tt.futures.Future of the reduced gradients, such as Work.get_future();
            callbacks of its then() run at the end of backward. default_hooks of
            tt.distributed.algorithms.ddp_comm_hooks are run by C. If hook fails on one rank,
            backward fails on all.
        """
        if hook in COMPRESSIONS:
            return self._watch(COMPRESSIONS[hook])
        if not callable(hook):
            raise TypeError("DistributedDataParallel.register_comm_hook: hook must be callable")
        user = c_void_p(keep(BucketHook(state, hook)))
        call("tt_ddp_set_hook", self._handle, START, FINISH, user, drop)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.training:
            call("tt_ddp_prepare_forward", self._handle)
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulates gradients in each process, without averaging, in a with block."""
        before = self.require_backward_grad_sync
        self._set_sync(False)
        try:
            yield
        finally:
            self._set_sync(before)

    def reduce_gradients(self) -> None:
        """Replaces the gradients that the parameters have by their means over the ranks, after
        backwards in no_sync, such as those of a compiled step. All ranks must call it."""
        call("tt_ddp_reduce", self._handle)

    def _set_sync(self, on: bool) -> None:
        self.require_backward_grad_sync = on
        call("tt_ddp_set_sync", self._handle, c_int32(on))
