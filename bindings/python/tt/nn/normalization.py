"""SyncBatchNorm, which can take the place of other batch normalisations."""
from __future__ import annotations

from . import _layers
from ._layers import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .layer import preserve_rng_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._types import device, dtype
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
        process_group: None = None,
        device: device | str | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        """process_group: must be None, which is this process."""
        if process_group is not None:
            raise NotImplementedError("SyncBatchNorm: process_group must be None: there are none")
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

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: None = None) -> Any:
        """Replaces the batch normalisations in a module by SyncBatchNorm over the same tensors.

        Returns the module, or its replacement.
        """
        made: Any = module
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d)):
            with preserve_rng_state():
                made = cls(
                    module.num_features,
                    module.eps,
                    module.momentum,
                    module.affine,
                    module.track_running_stats,
                    process_group,
                    bias=module.bias is not None,
                )
            for name in module._slots:
                setattr(made, name, getattr(module, name))
            made.train(module.training)
        for name, child in module.named_children():
            made.register_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
