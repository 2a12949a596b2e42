"""CUDA devices, with the names of torch.cuda.

x.to("cuda") copies a tensor to the device. The library libtt_cuda.so is loaded when it is first
needed. Without a device, queries return 0 or False, seeding has no effect, and functions that need
a device raise DeviceError.
"""
from __future__ import annotations

from ctypes import byref, c_int32
from importlib import import_module
from typing import Any, Callable

from .. import runtime
from .. import random as _random
from .._convert import place
from .._lib import call, local
from .._structs import struct
from .._tensor import Tensor
from ..errors import OutOfMemoryError as OutOfMemoryError
from ._tensor_types import BFloat16Tensor as BFloat16Tensor
from ._tensor_types import BoolTensor as BoolTensor
from ._tensor_types import ByteTensor as ByteTensor
from ._tensor_types import CharTensor as CharTensor
from ._tensor_types import DoubleTensor as DoubleTensor
from ._tensor_types import FloatTensor as FloatTensor
from ._tensor_types import HalfTensor as HalfTensor
from ._tensor_types import IntTensor as IntTensor
from ._tensor_types import LongTensor as LongTensor
from ._tensor_types import ShortTensor as ShortTensor
from .devices import AnyDevice
from .devices import device_count as device_count
from .devices import required
from .graphs import CUDAGraph as CUDAGraph
from .graphs import graph as graph
from .graphs import graph_pool_handle as graph_pool_handle
from .graphs import is_current_stream_capturing as is_current_stream_capturing
from .graphs import make_graphed_callables as make_graphed_callables
from .streams import Event as Event
from .streams import ExternalStream as ExternalStream
from .streams import Stream as Stream
from .streams import StreamContext as StreamContext
from .streams import current_stream as current_stream
from .streams import default_stream as default_stream
from .streams import set_stream as set_stream
from .streams import stream as stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import amp as amp
    from . import nvtx as nvtx

__all__ = [
    "amp",
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "CUDAGraph",
    "DeviceProperties",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Returns whether there is a CUDA device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Returns whether there is a CUDA device: tt initializes a device when it is first used."""
    return is_available()


def _lazy_init() -> None:
    """Raises DeviceError without a CUDA device."""
    init()


def _lazy_call(callable: Callable[[], Any], **kwargs: Any) -> None:
    """Calls a function if there is a CUDA device, without which none is ever initialized."""
    if is_available():
        callable()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns whether there is a CUDA device: tt supports bfloat16 on all of them."""
    return is_available()


def init() -> None:
    """Raises DeviceError if there is no CUDA device."""
    required("init")


def current_device() -> int:
    """Returns the index of the current device. Raises DeviceError if there is none."""
    return required("current_device").index or 0


def set_device(device: AnyDevice) -> None:
    """Sets this thread's current device: that of "cuda" without a number. None and negative numbers
    do nothing. Raises DeviceError if the device does not exist."""
    if device is None or isinstance(device, int) and device < 0:
        return
    local.cuda_device = required("set_device", device).index or 0


class device:
    """Calls set_device for a block."""

    def __init__(self, device: AnyDevice) -> None:
        self.idx = device
        self.outer = 0

    def __enter__(self) -> None:
        self.outer = local.cuda_device
        set_device(self.idx)

    def __exit__(self, *_: object) -> None:
        local.cuda_device = self.outer


class device_of(device):
    """Makes the device of a tensor the current one for a block; tensors of the CPU do nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device if obj.device.type == "cuda" else None)


def synchronize(device: AnyDevice = None) -> None:
    """Waits for all work on a device, by default the current one."""
    if is_available():
        runtime.synchronize(required("synchronize", device))


class DeviceProperties:
    """Properties of a device, with the names of torch.cuda.get_device_properties."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.name: str = facts["name"]
        self.major: int = facts["major"]
        self.minor: int = facts["minor"]
        self.total_memory: int = facts["total_memory"]
        self.multi_processor_count: int = facts["multi_processor_count"]
        self.warp_size: int = facts["warp_size"]
        self.max_threads_per_multi_processor: int = facts["max_threads_per_multi_processor"]
        self.shared_memory_per_block: int = facts["shared_memory_per_block"]
        self.shared_memory_per_block_optin: int = facts["shared_memory_per_block_optin"]
        self.L2_cache_size: int = facts["l2_cache_size"]
        self.is_integrated: int = facts["is_integrated"]

    def __repr__(self) -> str:
        return f"DeviceProperties({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def get_device_properties(device: AnyDevice = None) -> DeviceProperties:
    """Returns the properties of a device. Raises DeviceError if it does not exist."""
    properties = struct("tt_device_properties")()
    wanted = required("get_device_properties", device)
    call("tt_device_get_properties", place(wanted), byref(properties))
    facts = {name: getattr(properties, name) for name, _ in properties._fields_}
    facts["name"] = (properties.name or b"").decode()
    return DeviceProperties(facts)


def get_device_name(device: AnyDevice = None) -> str:
    """Returns the product name of a device. Raises DeviceError if it does not exist."""
    required("get_device_name", device)
    return get_device_properties(device).name


def get_device_capability(device: AnyDevice = None) -> tuple[int, int]:
    """Returns the compute capability, e.g. (9, 0). Raises DeviceError if it does not exist."""
    facts = get_device_properties(device)
    return facts.major, facts.minor


def can_device_access_peer(device: AnyDevice, peer_device: AnyDevice) -> bool:
    """Returns whether kernels of device can access the memory of peer_device."""
    here, there = (required("can_device_access_peer", x) for x in (device, peer_device))
    accessible = c_int32()
    call("tt_device_can_access_peer", place(here), place(there), byref(accessible))
    return bool(accessible.value)


def empty_cache() -> None:
    """Frees cached memory, including that of the CPU."""
    runtime.trim()


default_generators: tuple[Any, ...] = ()  # of devices: they have this thread's generator


# ---- random numbers: one generator for all devices ----


def manual_seed(seed: int) -> None:
    """Seeds this thread's generator if there is a CUDA device, as tt.manual_seed does."""
    if is_available():
        _random.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds this thread's generator if there is a CUDA device, as tt.manual_seed does."""
    manual_seed(seed)


def seed() -> None:
    """Seeds this thread's generator from the system's entropy if there is a CUDA device."""
    if is_available():
        _random.seed()


seed_all = seed


def initial_seed() -> int:
    """Returns the seed of this thread's generator."""
    return _random.initial_seed()


def get_rng_state(device: AnyDevice = "cuda") -> Tensor:
    """Returns the state of this thread's generator. Raises DeviceError without such a device."""
    required("get_rng_state", device)
    return _random.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """Returns a list with the generator state of each CUDA device."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Tensor, device: AnyDevice = "cuda") -> None:
    """Sets the state of this thread's generator. Raises DeviceError without such a device."""
    required("set_rng_state", device)
    _random.set_rng_state(new_state)


def set_rng_state_all(new_states: list[Tensor]) -> None:
    """Sets the states that get_rng_state_all returned."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


# ---- memory ----


def memory(device: AnyDevice) -> dict[str, int]:
    """Returns the fields of tt_device_memory; zeros without a CUDA device."""
    figures = struct("tt_device_memory")()
    if is_available():
        call("tt_device_memory_stats", place(required("memory_stats", device)), byref(figures))
    return {name: getattr(figures, name) for name, _ in figures._fields_}


def memory_allocated(device: AnyDevice = None) -> int:
    """Returns the number of bytes in use; 0 without a CUDA device."""
    return memory(device)["allocated"]


def max_memory_allocated(device: AnyDevice = None) -> int:
    """Returns the peak number of bytes in use; 0 without a CUDA device."""
    return memory(device)["max_allocated"]


def memory_reserved(device: AnyDevice = None) -> int:
    """Returns the number of bytes in use and in caches; 0 without a CUDA device."""
    return memory(device)["reserved"]


def max_memory_reserved(device: AnyDevice = None) -> int:
    """Returns the peak number of bytes in use and in caches; 0 without a CUDA device."""
    return memory(device)["max_reserved"]


def reset_peak_memory_stats(device: AnyDevice = None) -> None:
    """Resets the peak statistics to the current numbers of bytes."""
    if is_available():
        call("tt_device_reset_peak", place(required("reset_peak_memory_stats", device)))


def memory_stats(device: AnyDevice = None) -> dict[str, int]:
    """Returns statistics of the allocator with the names of torch.cuda; zeros without a device."""
    figures = memory(device)
    return {
        "allocated_bytes.all.current": figures["allocated"],
        "allocated_bytes.all.peak": figures["max_allocated"],
        "reserved_bytes.all.current": figures["reserved"],
        "reserved_bytes.all.peak": figures["max_reserved"],
        "allocation.all.allocated": figures["allocations"],
        "num_alloc_retries": figures["retries"],
        "num_ooms": figures["failures"],
    }


def memory_summary(device: AnyDevice = None, abbreviated: bool = False) -> str:
    """Returns memory_stats as a table."""
    stats = memory_stats(device)
    width = max(map(len, stats))
    return "\n".join(f"{name:<{width}} {value:>16,}" for name, value in stats.items())


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def ipc_collect() -> None:
    """Does nothing: tensors on devices are not shared between processes."""


def get_arch_list() -> list[str]:
    """Returns the architectures of the devices, such as ["sm_90"]."""
    found = {get_device_capability(i) for i in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(found)]


def mem_get_info(device: AnyDevice = None) -> tuple[int, int]:
    """Returns the free and the total bytes of a device. Raises DeviceError if it does not exist."""
    required("mem_get_info", device)
    figures = memory(device)
    return figures["free"], figures["total"]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name == "_initialized":
            return is_initialized()
        if name not in ("amp", "nvtx"):
            raise AttributeError(f"module 'tt.cuda' has no attribute '{name}'")
        return import_module("." + name, __name__)


def __dir__() -> list[str]:
    return __all__
