"""Exchange by DLPack, as in torch.utils.dlpack."""
from __future__ import annotations

from typing import Any

from .._dlpack import from_dlpack
from .._tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """Returns a DLPack capsule over the memory of a tensor."""
    return tensor.__dlpack__()
