"""Losses with a function of the application."""
from __future__ import annotations

from .. import _ops as ops
from ._layers import PairwiseDistance
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Literal

    from .._tensor import Tensor

    Distance = Callable[[Tensor, Tensor], Tensor]
    Reduction = Literal["none", "mean", "sum"]


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Distance | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns max(0, d(anchor, positive) - d(anchor, negative) + margin).

    distance_function: d, which gives a distance for each pair of vectors; None: the Euclidean one.
    margin: how much farther the negative should be; positive
    swap: takes d(positive, negative) where that is less than d(anchor, negative)
    reduction: "none", "mean" or "sum" of the losses
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or PairwiseDistance()
    far = distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    loss = ops.clamp(distance(anchor, positive) - far + margin, min=0)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


class TripletMarginWithDistanceLoss(Module):
    """Computes max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance d.

    distance_function: d, which gives a distance for each pair of vectors; None: the Euclidean one.
    margin: how much farther the negative should be; positive
    swap: takes d(positive, negative) where that is less than d(anchor, negative)
    reduction: "none", "mean" or "sum" of the losses
    """

    __module__ = "tt.nn"

    def __init__(
        self,
        *,
        distance_function: Distance | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin}"
            )
        self.distance_function = distance_function or PairwiseDistance()
        self.margin, self.swap, self.reduction = margin, swap, reduction

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
