"""Types for hints, as in torch.types."""
from __future__ import annotations

from typing import Any, List, Sequence, Tuple, Union

from ._layout import layout as _layout
from ._tensor import Tensor
from ._types import Size as Size
from ._types import device as _device
from ._types import dtype as _dtype
from .random import Generator as Generator
from .storage import TypedStorage, UntypedStorage

_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_bool, _complex, _float, _int = bool, complex, float, int
_dispatchkey = str
_size = Union[Size, List[int], Tuple[int, ...]]
Number = Union[int, float, bool]
Device = Union[_device, str, int, None]
Storage = Union[TypedStorage, UntypedStorage]
FileLike = Any

__all__ = ["Device", "FileLike", "Number", "Storage"]


def __dir__() -> list[str]:
    return __all__
