"""tt.cuda.FloatTensor and so on: constructors and isinstance classes by dtype, of the current
device."""
from __future__ import annotations

from .._tensor_types import TypedTensor


class BoolTensor(TypedTensor, dtype="bool", device_type="cuda"):
    pass


class ByteTensor(TypedTensor, dtype="uint8", device_type="cuda"):
    pass


class CharTensor(TypedTensor, dtype="int8", device_type="cuda"):
    pass


class ShortTensor(TypedTensor, dtype="int16", device_type="cuda"):
    pass


class IntTensor(TypedTensor, dtype="int32", device_type="cuda"):
    pass


class LongTensor(TypedTensor, dtype="int64", device_type="cuda"):
    pass


class HalfTensor(TypedTensor, dtype="float16", device_type="cuda"):
    pass


class BFloat16Tensor(TypedTensor, dtype="bfloat16", device_type="cuda"):
    pass


class FloatTensor(TypedTensor, dtype="float32", device_type="cuda"):
    pass


class DoubleTensor(TypedTensor, dtype="float64", device_type="cuda"):
    pass
