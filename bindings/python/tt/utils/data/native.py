"""Batches of a TensorDataset by the loader of the C library, whose threads gather the rows."""
from __future__ import annotations

from array import array
from ctypes import byref, c_int32, c_int64, c_void_p
from struct import Struct
from typing import Any

from ..._convert import pointers
from ..._lib import Handle, call, fail, finalizer, lib, local, quick
from ..._tensor import Tensor, from_address
from .collate import default_collate
from .dataset import TensorDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler

options = Struct("Qqqqii").pack
ALL_SET = 15


class Dataset(Handle):
    """Owns a tt_dataset."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_dataset_release)


class Sampler(Handle):
    """Owns a tt_sampler."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_sampler_release)


class Loader(Handle):
    """Owns a tt_loader."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_loader_release)


def is_native(loader: Any) -> bool:
    """Returns whether the C library makes the loader's batches, without calls of Python code."""
    dataset, batches = loader.dataset, loader.batch_sampler
    if type(batches) is not BatchSampler:
        return False
    order: Any = batches.sampler
    return (
        type(dataset) is TensorDataset
        and loader.collate_fn is default_collate
        and loader._auto_collation
        and loader.worker_init_fn is None
        and (type(order) is SequentialSampler or type(order) is RandomSampler)
        and not getattr(order, "replacement", False)  # whose indices are drawn bit by bit
        and len(order.data_source) <= len(dataset)
        and all(type(t) is Tensor and t.is_cpu and not t.requires_grad for t in dataset.tensors)
    )


class Batches:
    """An epoch of a loader, without its first `skip` batches."""

    def __init__(self, loader: Any, skip: int) -> None:
        batches: Any = loader.batch_sampler
        indices = array("q", batches.sampler)[skip * batches.batch_size :]
        tensors = loader.dataset.tensors
        self.room = len(tensors)
        self.outs = (c_void_p * self.room)()
        self.n = c_int64()
        dataset, order, self.loader = Dataset(), Sampler(), Loader()
        call("tt_dataset_tensors", pointers(tensors), c_int64(self.room), byref(dataset))
        address, n = indices.buffer_info()
        place = c_void_p(address if n else None)
        call("tt_sampler_subset", place, c_int64(n), c_int32(0), c_int64(0), byref(order))
        workers, ahead = loader.num_workers, loader.prefetch_factor or 2
        opts = options(ALL_SET, batches.batch_size, workers, ahead, batches.drop_last, 0)
        call("tt_loader_new", dataset, order, opts, byref(self.loader))

    def next(self) -> list[Tensor]:
        """Returns a batch. Raises StopIteration at the end."""
        room = c_int64(self.room)
        if lib.tt_loader_next(local.ctx, self.loader, self.outs, room, byref(self.n)):
            fail()
        if not self.n.value:
            raise StopIteration
        return [from_address(address or 0) for address in self.outs]
