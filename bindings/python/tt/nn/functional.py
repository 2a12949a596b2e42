"""Functions of neural networks, by the names of torch.nn.functional."""
from __future__ import annotations

import warnings

from .. import _ops
from .multi_head import multi_head_attention_forward as multi_head_attention_forward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from .._ops.functional import *  # noqa: F403
    from .._tensor import Tensor

_OWN = (
    "fold multi_head_attention_forward triplet_margin_with_distance_loss unfold "
    "upsample_bilinear upsample_nearest"
)
__all__ = sorted([*_ops.PLACES["nn.functional"].split(), *_OWN.split()])

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


def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Returns the elements of each window of the last two dimensions as a column.

    input: (N, C, H, W) or (C, H, W); the result is (N, C * kernel, windows)
    kernel_size: (rows, columns) of a window, or one int for both, as for the next three
    dilation: step between the elements of a window
    padding: zeros added on all sides
    stride: step between windows
    """
    return _ops.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Adds up columns as windows of an image.

    input: (N, C * kernel, windows), as unfold() returns it
    output_size: (rows, columns) of the image, or one int for both
    kernel_size: (rows, columns) of a window, or one int for both, as for the next three
    dilation: step between the elements of a window
    padding: zeros that were added on all sides
    stride: step between windows
    """
    return _ops.col2im(input, output_size, kernel_size, dilation, padding, stride)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Computes max(0, margin + distance(anchor, positive) - distance(anchor, negative)).

    distance_function: the distance of two tensors; None: pairwise_distance()
    margin: difference of the distances from which there is no loss, greater than 0
    swap: the distance of positive and negative counts if it is smaller
    reduction: "none", "sum" or "mean"
    """
    name = "triplet_margin_with_distance_loss"
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"{name}: reduction is {reduction!r}: must be none, sum or mean")
    if not margin > 0:
        raise ValueError(f"{name}: margin is {margin}: must be greater than 0")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            f"{name}: anchor, positive and negative have {anchor.ndim}, {positive.ndim} and "
            f"{negative.ndim} dimensions: must be equal"
        )
    distance = distance_function or _ops.find("nn.functional", "pairwise_distance")
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = _ops.minimum(far, distance(positive, negative))
    loss = _ops.clamp(margin + near - far, min=0)
    return loss if reduction == "none" else getattr(loss, reduction)()
