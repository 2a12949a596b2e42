"""Functions of neural networks, by the names of torch.nn.functional."""
from __future__ import annotations

import warnings

from .. import _ops
from .multi_head import multi_head_attention_forward as multi_head_attention_forward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from .._ops.functional import *  # noqa: F403
    from .._tensor import Tensor

__all__ = sorted(
    [
        *_ops.PLACES["nn.functional"].split(),
        "multi_head_attention_forward",
        "upsample_bilinear",
        "upsample_nearest",
    ]
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Loads an operator when it is first used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        function = globals()[name] = _ops.find("nn.functional", name)
        return function

    def __dir__() -> list[str]:
        return __all__

    def softmax(input, dim=None, _stacklevel=3, dtype=None):
        return _ops.softmax(input, usual_dim("softmax", input, dim), dtype=dtype)

    def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
        return _ops.log_softmax(input, usual_dim("log_softmax", input, dim), dtype=dtype)

    def softmin(input, dim=None, _stacklevel=3, dtype=None):
        return _ops.softmin(input, usual_dim("softmin", input, dim), dtype=dtype)


def usual_dim(name: str, input: Tensor, dim: int | None) -> int:
    """Returns the dimension of softmax and the like; without one, the former default of PyTorch."""
    if dim is not None:
        return dim
    warnings.warn(f"{name}: give dim, whose implicit choice is deprecated", stacklevel=3)
    return 0 if input.ndim in (0, 1, 3) else 1


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Is interpolate() with mode="nearest"."""
    return _ops.find("nn.functional", "interpolate")(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Is interpolate() with mode="bilinear" and align_corners=True."""
    interpolate = _ops.find("nn.functional", "interpolate")
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)
