"""Models on several devices and in several processes, with the API of torch.nn.parallel."""
from __future__ import annotations

from ..module import Module
from .distributed import DistributedDataParallel
from .wrapper import Wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(Wrapper):
    """Calls the module, without dividing a batch among devices.

    As in PyTorch, names in state_dict() begin with "module.". device_ids, output_device and dim are
    ignored; a module on several devices is an error.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__(module)
        self.dim, self.device_ids = dim, list(device_ids or [])
        self.output_device = output_device


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


def __dir__() -> list[str]:
    return __all__
