"""Models on several devices and in several processes, with the API of torch.nn.parallel."""
from __future__ import annotations

from copy import deepcopy
from typing import Any, Iterable, Sequence

from ..._ops import cat, stack
from ..._tensor import Tensor
from ..._types import device as Device
from ..module import Module
from .distributed import DistributedDataParallel
from .wrapper import Wrapper

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


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


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> list[Any]:
    """Divides tensors, and those in lists, tuples and dicts, among devices along dim. Returns a
    list with an item for each device; other objects are repeated."""

    def parts(x: Any) -> list[Any]:
        if isinstance(x, Tensor):
            chunks = x.chunk(len(target_gpus), dim)
            return [chunk.to(target_gpus[i]) for i, chunk in enumerate(chunks)]
        if isinstance(x, dict) and x:
            return [dict(zip(x, row)) for row in zip(*map(parts, x.values()))]
        if isinstance(x, (list, tuple)) and x:
            return [items_like(x, row) for row in zip(*map(parts, x))]
        return [x] * len(target_gpus)

    return parts(inputs)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Joins the results of several devices on one of them."""
    first = outputs[0]
    if isinstance(first, Tensor):
        rows = [x.to(target_device) for x in outputs]
        return stack(rows) if not first.ndim else cat(rows, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return {key: gather([x[key] for x in outputs], target_device, dim) for key in first}
    columns = [gather(column, target_device, dim) for column in zip(*outputs)]
    return items_like(first, columns)


def items_like(example: Any, items: Iterable[Any]) -> Any:
    """Returns items as a list, a tuple or a named tuple, as example is."""
    kind = type(example)
    return kind(*items) if hasattr(example, "_fields") else kind(items)


def replicate(network: Module, devices: Any, detach: bool = False) -> list[Module]:
    """Returns a copy of a module for each device; the first is the module itself if it is
    there."""
    place = next((p.device for p in network.parameters()), None)
    return [
        network if place is None or i == 0 and place == Device(d) else deepcopy(network).to(d)
        for i, d in enumerate(devices)
    ]


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """Calls modules with arguments, one after another. Returns the list of the results."""
    results = []
    for i, module in enumerate(modules):
        args = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        results.append(module(*args, **(kwargs_tup[i] if kwargs_tup else {})))
    return results


def __dir__() -> list[str]:
    return __all__
