"""Models on several devices, by the names of torch.nn.parallel: with one device, the model."""
from __future__ import annotations

from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class Wrapper(Module):
    """A model that is the attribute `module`, and is called in its place."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


class DataParallel(Wrapper):
    """Calls the module: a batch is divided among no devices.

    Names in state_dict() begin with "module.", as PyTorch's. device_ids, output_device and dim are
    accepted; a module on several devices is not.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__(module)
        self.dim, self.device_ids = dim, list(device_ids or [])
        self.output_device = output_device


class DistributedDataParallel(Wrapper):
    """Calls the module, in a group of one process: there are no gradients to average.

    Raises ValueError before tt.distributed.init_process_group. Names in state_dict() begin with
    "module.", as PyTorch's.
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
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel: no parameter of module requires a gradient"
            )
        self.dim, self.device_ids = dim, device_ids
        self.find_unused_parameters = find_unused_parameters

    def no_sync(self) -> AbstractContextManager[None]:
        """Returns a block in which gradients are not averaged: with one process they never are."""
        from contextlib import nullcontext

        return nullcontext()


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Returns module(*inputs, **module_kwargs)."""
    if not isinstance(inputs, tuple):
        inputs = (inputs,)
    return module(*inputs, **(module_kwargs or {}))
