"""autocast, and decorators for custom autograd functions under it."""
from __future__ import annotations

import threading
import warnings
from ctypes import c_int32
from functools import wraps
from typing import Any, Callable, TypeVar

from .._hints import Self
from .._lib import call, local, quick
from .._tensor import Tensor
from .._tree import mapped
from .._types import DTYPES, bfloat16, float16
from .._types import dtype as Dtype

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
TYPES = {"cpu": 1, "cuda": 2}  # tt_device_type


def type_code(device_type: str, function: str) -> c_int32:
    """Returns the C API's code of a device type. Raises RuntimeError if autocast does not support
    it."""
    if not isinstance(device_type, str):
        raise TypeError(
            f"{function}: device_type is {type(device_type).__name__}: must be a str such as 'cpu'"
        )
    if device_type not in TYPES:
        raise RuntimeError(
            f"{function}: device_type is {device_type!r}: autocast is for 'cpu' and 'cuda'"
        )
    return c_int32(TYPES[device_type])


def is_autocast_available(device_type: str) -> bool:
    """Returns whether autocast supports a device type."""
    return device_type in TYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Returns whether autocast is enabled for a device type. It is disabled in backward."""
    if device_type in ("mps", "xpu"):  # of which tt has no devices
        return False
    code = type_code(device_type, "is_autocast_enabled")
    return bool(quick.tt_autocast_enabled(local.ctx, code))


def is_autocast_cpu_enabled() -> bool:
    """Same as is_autocast_enabled("cpu")."""
    return is_autocast_enabled("cpu")


def get_autocast_dtype(device_type: str) -> Dtype:
    """Returns the dtype that autocast computes in on a device type."""
    code = type_code(device_type, "get_autocast_dtype")
    return DTYPES[quick.tt_autocast_dtype(local.ctx, code)]


def get_autocast_cpu_dtype() -> Dtype:
    """Same as get_autocast_dtype("cpu")."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Dtype:
    """Same as get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Returns whether autocast caches the casts of parameters until its block ends."""
    return bool(quick.tt_autocast_cache_enabled(local.ctx))


def clear_autocast_cache() -> None:
    """Clears the cached casts of parameters."""
    call("tt_autocast_clear_cache")


class Changes(threading.local):
    """What set_autocast_enabled and its like have changed in the calling thread.

    levels: for each block of autocast that is open, and before them for none, the device types
    whose changes end with the block, each once.
    """

    def __init__(self) -> None:
        self.levels: list[list[str]] = [[]]
        self.nesting = 0


changes = Changes()


def values_of(device_type: str) -> dict[str, Any]:
    """Returns whether autocast is enabled for a device type, and its dtype."""
    return {"enabled": is_autocast_enabled(device_type), "dtype": get_autocast_dtype(device_type)}


def change(function: str, device_type: str, **values: Any) -> None:
    """Changes enabled, dtype or cache of autocast until the end of the block of autocast that the
    thread is in, or for good."""
    type_code(device_type, function)
    level = changes.levels[-1]
    cache = c_int32(bool(values.pop("cache", is_autocast_cache_enabled())))
    now = {name: values_of(name) for name in (*level, device_type)}
    now[device_type].update(values)
    while level:  # one change of each type replaces those before
        call("tt_autocast_pop")
        level.pop()
    for name, new in now.items():
        code, enabled = c_int32(TYPES[name]), c_int32(bool(new["enabled"]))
        call("tt_autocast_push", code, enabled, c_int32(new["dtype"].code), cache)
        level.append(name)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switches autocast on or off for a device type, or with one argument for "cuda". Blocks of
    autocast restore the mode when they end."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    change("set_autocast_enabled", device_type, enabled=enabled)


def set_autocast_dtype(device_type: str, dtype: Dtype) -> None:
    """Sets the dtype that autocast computes in on a device type."""
    change("set_autocast_dtype", device_type, dtype=dtype)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Same as set_autocast_enabled("cpu", enabled)."""
    change("set_autocast_cpu_enabled", "cpu", enabled=enabled)


def set_autocast_cpu_dtype(dtype: Dtype) -> None:
    """Same as set_autocast_dtype("cpu", dtype)."""
    change("set_autocast_cpu_dtype", "cpu", dtype=dtype)


def set_autocast_gpu_dtype(dtype: Dtype) -> None:
    """Same as set_autocast_dtype("cuda", dtype)."""
    change("set_autocast_gpu_dtype", "cuda", dtype=dtype)


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether autocast caches the casts of parameters."""
    change("set_autocast_cache_enabled", "cpu", cache=enabled)


def autocast_increment_nesting() -> int:
    """Counts a block that a program opens by set_autocast_enabled. Returns the number of them."""
    changes.nesting += 1
    return changes.nesting


def autocast_decrement_nesting() -> int:
    """Counts that a block ends. Returns the number of those that remain."""
    changes.nesting -= 1
    return changes.nesting


class autocast:
    """Enables mixed precision in a block or, as a decorator, in a function.

    Matrix products, convolutions and attention compute in dtype: bfloat16 by default on the CPU,
    float16 on CUDA. Losses compute in float32. Other operators compute in the dtype of their
    inputs; float64 is never cast. Call backward outside of the block: it computes in the dtypes of
    forward.
    cache_enabled: caches the casts of parameters until the outermost block ends.
    The mode applies to the calling thread only.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.code = type_code(device_type, "autocast")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self.cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self.enabled = bool(enabled)
        if self.enabled:
            self.check()

    def check(self) -> None:
        """Warns and disables autocast if the device or the dtype is not supported."""
        reason = ""
        if self.fast_dtype not in (bfloat16, float16):
            reason = f"dtype is {self.fast_dtype}: must be tt.bfloat16 or tt.float16"
        elif self.device == "cuda":
            from .. import cuda

            reason = "" if cuda.is_available() else "there is no CUDA device"
        if reason:
            warnings.warn(f"autocast: {reason}: autocast is off", stacklevel=3)
            self.enabled = False

    def __enter__(self) -> Self:
        number = self.fast_dtype.code if self.enabled else 0
        call(
            "tt_autocast_push",
            self.code,
            c_int32(self.enabled),
            c_int32(number),
            c_int32(bool(self.cache_enabled)),
        )
        changes.levels.append([])
        return self

    def __exit__(self, *_: object) -> None:
        for _change in changes.levels.pop():
            call("tt_autocast_pop")
        call("tt_autocast_pop")

    def __call__(self, function: F) -> F:
        @wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated  # type: ignore[return-value]


def casted(structure: Any, device_type: str, dtype: Dtype) -> Any:
    """Casts the floating-point tensors of a structure that are on a device type to dtype, except
    float64 ones."""

    def change(x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.dtype.is_floating_point:
            return x
        suitable = x.device.type == device_type and x.dtype.name != "float64"
        return x.to(dtype) if suitable else x

    return mapped(structure, change)


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Dtype | None = None) -> Any:
    """Decorates the forward of a Function that is called under autocast.

    cast_inputs: floating-point arguments are cast to this dtype, and forward runs without
    autocast. By default forward runs with the autocast mode of the call. Decorate its backward
    with custom_bwd.
    """
    if fwd is None:
        return lambda f: custom_fwd(f, device_type=device_type, cast_inputs=cast_inputs)
    type_code(device_type, "custom_fwd")

    @wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = get_autocast_dtype(device_type)
        on = is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                *casted(args, device_type, cast_inputs), **casted(kwargs, device_type, cast_inputs)
            )

    return decorated


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates the backward of a Function whose forward has custom_fwd: backward runs with the
    autocast mode of forward."""
    if bwd is None:
        return lambda f: custom_bwd(f, device_type=device_type)
    type_code(device_type, "custom_bwd")

    @wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return decorated
