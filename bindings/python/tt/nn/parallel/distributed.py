"""DistributedDataParallel: the same model in each process, with the mean of their gradients."""
from __future__ import annotations

from contextlib import contextmanager

from ... import _ops as ops
from ...autograd import is_grad_enabled, no_grad
from .wrapper import Wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from ..._tensor import Tensor
    from ..module import Module

MEGABYTE = 1 << 20
FIRST_BUCKET_BYTES = MEGABYTE  # small: its reduction begins early in backward


class Bucket:
    """Gradients in one tensor, which is reduced as a whole. Gradient i is views[i]."""

    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = parameters
        sizes = [p.numel() for p in parameters]
        self.flat = ops.zeros(sum(sizes), dtype=parameters[0].dtype)
        parts = self.flat.split(sizes)
        self.views = [part.view(p.shape) for part, p in zip(parts, parameters)]
        self.work: Any = None
        self.filled: set[int] = set()

    def is_full(self) -> bool:
        return len(self.filled) == len(self.parameters)

    def fill(self, i: int) -> None:
        """Takes over the gradient of parameter i, which is a view of the bucket from then on."""
        p, view = self.parameters[i], self.views[i]
        grad: Any = p.grad
        if grad.data_ptr() != view.data_ptr():
            view.copy_(grad)
            p.grad = view
        self.filled.add(i)


def buckets_of(parameters: list[Tensor], limit: int) -> list[Bucket]:
    """Parameters of one dtype in each bucket, in the order in which backward reaches them."""
    groups: list[list[Tensor]] = []
    room = 0
    for p in reversed(parameters):
        size = p.numel() * p.element_size()
        if not groups or size > room or groups[-1][0].dtype != p.dtype:
            room = limit if groups else min(limit, FIRST_BUCKET_BYTES)
            groups.append([])
        groups[-1].append(p)
        room -= size
    return [Bucket(g) for g in groups]


class DistributedDataParallel(Wrapper):
    """Calls the module; backward replaces the gradients by their mean over all processes.

    Gradients are reduced in buckets, on a thread of tt while backward goes on; the last gradient
    waits for all of them. Each parameter must get a gradient in each backward. The parameters and
    buffers of rank 0 replace those of the others. Raises ValueError before
    tt.distributed.init_process_group. Names in state_dict() begin with "module.", as PyTorch's.

    broadcast_buffers: forward in training mode begins with the buffers of rank 0.
    bucket_cap_mb: megabytes of a bucket, by default 25; the first has 1.
    find_unused_parameters: must be False in more than one process.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        **kwargs: Any,
    ) -> None:
        from ... import distributed

        super().__init__(module)
        self.process_group = distributed.checked(process_group, "DistributedDataParallel")
        trained: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel: no parameter of module requires a gradient"
            )
        self.dim, self.device_ids = dim, device_ids
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self._buckets: list[Bucket] = []
        if self.process_group.size() == 1:
            return
        if find_unused_parameters:
            raise NotImplementedError(
                "DistributedDataParallel: find_unused_parameters must be False"
            )
        self._share([*module.parameters(), *module.buffers()])
        self._buckets = buckets_of(trained, int((bucket_cap_mb or 25) * MEGABYTE))
        self._launched = 0
        for bucket in self._buckets:
            for i, p in enumerate(bucket.parameters):
                p.register_post_accumulate_grad_hook(self._hook_of(bucket, i))

    def _share(self, tensors: list[Tensor]) -> None:
        """Copies the tensors of the group's first rank to the others."""
        with no_grad():
            for t in tensors:
                self.process_group.start("tt_group_broadcast", t.detach(), 0, wait=True)

    def _hook_of(self, bucket: Bucket, i: int) -> Any:
        def hook(_: Tensor) -> None:
            if self.require_backward_grad_sync:
                with no_grad():
                    bucket.fill(i)
                    self._reduce_full_buckets()

        return hook

    def _reduce_full_buckets(self) -> None:
        """Starts the reduction of full buckets, in the order that is the same in all processes."""
        buckets = self._buckets
        while self._launched < len(buckets) and buckets[self._launched].is_full():
            bucket = buckets[self._launched]
            mean = 2  # TT_REDUCE_MEAN
            start = self.process_group.start
            bucket.work = start("tt_group_all_reduce", bucket.flat, mean, wait=False)
            self._launched += 1
        if self._launched == len(buckets):
            works = [bucket.work for bucket in buckets]
            self._begin()
            for work in works:
                work.wait()

    def _begin(self) -> None:
        """No bucket has gradients of the next backward."""
        self._launched = 0
        for bucket in self._buckets:
            bucket.work = None
            bucket.filled.clear()

    def _check_finished(self) -> None:
        """Raises RuntimeError if the last backward left parameters out."""
        missing = {
            id(p)
            for b in self._buckets
            for i, p in enumerate(b.parameters)
            if any(b.filled for b in self._buckets) and i not in b.filled
        }
        if missing:
            names = [name for name, p in self.module.named_parameters() if id(p) in missing]
            self._begin()
            raise RuntimeError(
                f"DistributedDataParallel: {', '.join(names)} had no gradient in the last backward: "
                "every parameter must get one"
            )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._buckets and is_grad_enabled() and self.require_backward_grad_sync:
            self._check_finished()
            if self.broadcast_buffers and self.training:
                self._share(list(self.module.buffers()))
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients add up in each process, without a mean."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before
