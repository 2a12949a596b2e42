"""FloatTensor, LongTensor and so on: constructors and isinstance classes by dtype.

The tensors themselves have the class Tensor.
"""
from __future__ import annotations

from typing import Any

from . import _ops
from ._create import tensor
from ._layout import strided
from ._tensor import Tensor
from ._types import BY_NAME, Size
from ._types import device as Device
from ._types import dtype as DType


class OfDtype(type):
    """The metaclass: isinstance(x, FloatTensor) is True for a float32 tensor on the CPU."""

    dtype: DType
    device_type: str
    layout = strided

    @property
    def is_cuda(cls) -> bool:
        return cls.device_type == "cuda"

    def __instancecheck__(cls, x: object) -> bool:
        if not isinstance(x, Tensor) or x.dtype is not cls.dtype:
            return False
        return x.device.type == cls.device_type


class TypedTensor(metaclass=OfDtype):
    """Creates tensors of one dtype: FloatTensor(2, 3) is uninitialised and has this shape,
    FloatTensor(data) has the values of data."""

    def __init_subclass__(cls, dtype: str, device_type: str = "cpu") -> None:
        cls.dtype, cls.device_type = BY_NAME[dtype], device_type

    def __new__(cls, *data: Any, device: Device | str | None = None) -> Any:
        if device is not None and Device(device).type != cls.device_type:
            raise ValueError(
                f"{cls.__name__}(): device is {device}: the class makes tensors on "
                f"{cls.device_type}"
            )
        if len(data) == 1 and isinstance(data[0], Tensor):
            if not isinstance(data[0], cls):
                raise TypeError(
                    f"{cls.__name__}(): the tensor is {data[0].dtype} on {data[0].device}: must be "
                    f"{cls.dtype} on {cls.device_type}"
                )
            return data[0].detach()
        if len(data) == 1 and isinstance(data[0], Size):
            return _ops.empty(data[0], dtype=cls.dtype, device=cls.device_type)
        if all(type(x) is int for x in data):
            return _ops.empty(data or (0,), dtype=cls.dtype, device=cls.device_type)
        if len(data) == 1 and hasattr(data[0], "__len__"):
            return tensor(*data).to(cls.device_type, cls.dtype)
        raise TypeError(f"{cls.__name__}() takes sizes or a sequence")


class BoolTensor(TypedTensor, dtype="bool"):
    pass


class ByteTensor(TypedTensor, dtype="uint8"):
    pass


class CharTensor(TypedTensor, dtype="int8"):
    pass


class ShortTensor(TypedTensor, dtype="int16"):
    pass


class IntTensor(TypedTensor, dtype="int32"):
    pass


class LongTensor(TypedTensor, dtype="int64"):
    pass


class HalfTensor(TypedTensor, dtype="float16"):
    pass


class BFloat16Tensor(TypedTensor, dtype="bfloat16"):
    pass


class FloatTensor(TypedTensor, dtype="float32"):
    pass


class DoubleTensor(TypedTensor, dtype="float64"):
    pass
