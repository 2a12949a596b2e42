"""SyncBatchNorm, which can replace other batch normalisations."""
from __future__ import annotations

from typing import Any

from .. import _ops as ops
from .._tensor import Tensor
from .._types import device, dtype
from ..autograd import no_grad
from . import _layers
from ._layers import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .layer import preserve_rng_state
from .module import Module


class SyncBatchNorm(_layers.SyncBatchNorm):
    __doc__ = _layers.SyncBatchNorm.__doc__
    __module__ = "tt.nn"
    _class = "SyncBatchNorm"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: device | str | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        """process_group: a group of tt.distributed, by default all processes. Batch statistics are
        computed over its members, or in this process without a group."""
        self._initialize(
            num_features=num_features,
            eps=eps,
            momentum=momentum,
            affine=affine,
            track_running_stats=track_running_stats,
            device=device,
            dtype=dtype,
            bias=bias,
        )
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        from .. import distributed

        is_local = not self.training and self.running_mean is not None
        if is_local or not distributed.is_initialized():
            return super().forward(input)
        if distributed.get_world_size(self.process_group) == 1:
            return super().forward(input)
        return self._normalized_together(input)

    def _normalized_together(self, x: Tensor) -> Tensor:
        """Batch normalisation with the mean and variance over the batches of all ranks."""
        from ..distributed.nn.functional import AllGather

        dims = [0, *range(2, x.ndim)]
        count = x.numel() // x.shape[1]
        own = x.mean(dims) if count else ops.zeros(x.shape[1], dtype=x.dtype)
        around = x - own.view(self._per_channel(x))
        squares = (around * around).sum(dims)
        parts = AllGather.apply(
            ops.cat([own, squares, ops.full((1,), count, dtype=x.dtype)]), self.process_group
        )
        channels = x.shape[1]
        means, sums, counts = parts.split([channels, channels, 1], 1)
        total = counts.detach().sum()
        mean = (means * counts).sum(0) / total
        apart = means - mean  # of Chan, Golub, LeVeque: variances of parts become one of the whole
        variance = (sums + counts * apart * apart).sum(0) / total
        self._update(mean.detach(), variance.detach(), total)
        scale = (variance + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        y = (x - mean.view(self._per_channel(x))) * scale.view(self._per_channel(x))
        return y if self.bias is None else y + self.bias.view(self._per_channel(x))

    @staticmethod
    def _per_channel(x: Tensor) -> list[int]:
        return [1, -1, *[1] * (x.ndim - 2)]

    def _update(self, mean: Tensor, variance: Tensor, total: Tensor) -> None:
        """Updates the running statistics."""
        means, variances, batches = self.running_mean, self.running_var, self.num_batches_tracked
        if not self.training or means is None or variances is None or batches is None:
            return
        with no_grad():
            batches.add_(1)
            factor = 1 / batches.item() if self.momentum is None else self.momentum
            means.mul_(1 - factor).add_(mean, alpha=factor)
            variances.mul_(1 - factor).add_(variance * (total / (total - 1)), alpha=factor)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """Replaces the batch normalisations in a module by SyncBatchNorm over the same tensors.

        Returns the module, or its replacement.
        """
        result: Any = module
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d)):
            with preserve_rng_state():
                result = cls(
                    module.num_features,
                    module.eps,
                    module.momentum,
                    module.affine,
                    module.track_running_stats,
                    process_group,
                    bias=module.bias is not None,
                )
            for name in module._slots:
                setattr(result, name, getattr(module, name))
            result.train(module.training)
        for name, child in module.named_children():
            result.register_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
