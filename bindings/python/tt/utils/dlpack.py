"""Exchange by DLPack, as in torch.utils.dlpack."""
from __future__ import annotations

from .._dlpack import from_dlpack
from .._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """Returns a DLPack capsule over the memory of a tensor."""
    return tensor.__dlpack__()
