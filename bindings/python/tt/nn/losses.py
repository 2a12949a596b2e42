"""Losses with arguments other than tensors, such as a distance function."""
from __future__ import annotations

from abc import ABCMeta
from math import prod
from typing import Any, Callable, Literal, Sequence, Union

from .. import _ops as ops
from .._tensor import Tensor
from .._types import device, dtype
from . import _layers, functional
from ._layers import Linear, PairwiseDistance
from .module import Module
from .sequences import _lengths

Distance = Callable[[Tensor, Tensor], Tensor]
Lengths = Union[Tensor, int, Sequence[int]]
Reduction = Literal["none", "mean", "sum"]


class _Loss(Module, metaclass=ABCMeta):
    """Base class for losses of one's own, with their reduction. isinstance takes tt's losses for
    instances."""

    reduction: Any

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            summed = "mean" if size_average in (None, True) else "sum"
            reduction = summed if reduce in (None, True) else "none"
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """Base class for losses of one's own with weights of classes."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


WEIGHTED = "BCELoss CrossEntropyLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss".split()
for each in dir(_layers):
    if each.endswith("Loss"):
        (_WeightedLoss if each in WEIGHTED else _Loss).register(getattr(_layers, each))


class CTCLoss(_layers.CTCLoss):
    __doc__ = _layers.CTCLoss.__doc__
    __module__ = "tt.nn"
    _class = "CTCLoss"

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Lengths, target_lengths: Lengths
    ) -> Tensor:
        """input_lengths, target_lengths: tensors, or sequences of ints."""
        lengths = (_lengths(given, log_probs) for given in (input_lengths, target_lengths))
        return self._forward(log_probs, targets, *lengths)


class GaussianNLLLoss(_layers.GaussianNLLLoss):
    __doc__ = _layers.GaussianNLLLoss.__doc__
    __module__ = "tt.nn"
    _class = "GaussianNLLLoss"

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """var: variances, or one number."""
        variances = var if isinstance(var, Tensor) else ops.full_like(input.detach(), var)
        return self._forward(input, target, variances)


class TripletMarginWithDistanceLoss(_Loss):
    """Computes max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance d.

    distance_function: d, which returns a distance for each pair of vectors; None: the Euclidean.
    margin: the required difference of the distances; positive
    swap: uses d(positive, negative) where it is less than d(anchor, negative)
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
        return functional.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its results in one function.

    in_features: size of the last dimension of the input
    num_classes: number of classes
    out_features: sizes of the targets' dimensions after those of the input, each with its own
        classes
    bias: whether the linear layer has a bias
    reduction: "none", "mean" or "sum" of the losses
    weight: weight of each class
    ignore_index: class of targets that are ignored
    label_smoothing: fraction of each target that is spread over all classes
    options: must be None
    device, dtype: of the parameters
    """

    __module__ = "tt.nn"
    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: Sequence[int] = (),
        bias: bool = False,
        device: device | str | None = None,
        dtype: dtype | None = None,
        reduction: Reduction = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: None = None,
    ) -> None:
        super().__init__()
        if options is not None:
            raise NotImplementedError("LinearCrossEntropyLoss: options must be None")
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ValueError(f"weight has shape {tuple(weight.shape)}: must be ({num_classes},)")
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"label_smoothing is {label_smoothing}: must be in [0, 1]")
        self.in_features, self.num_classes = in_features, num_classes
        self.out_features, self.bias = tuple(out_features), bias
        self.reduction, self.ignore_index = reduction, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.register_buffer("weight", weight)
        classes = num_classes * prod(out_features)
        self.linear = Linear(in_features, classes, bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        linear_bias = None if bias is None else bias.reshape(shape)
        return functional.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.in_features)),
            target,
            linear_bias=linear_bias,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        names = ("in_features", "num_classes", "out_features", "bias", "reduction")
        more = ("ignore_index", "label_smoothing", "options")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names + more)
