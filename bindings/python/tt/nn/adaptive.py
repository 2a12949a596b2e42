"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes with few frequent ones."""
from __future__ import annotations

from typing import NamedTuple, Sequence

from .. import _ops as ops
from .._tensor import Tensor
from .._types import device, dtype
from ._layers import Linear
from .containers import ModuleList, Sequential
from .module import Module


class AdaptiveOutput(NamedTuple):
    """The result of AdaptiveLogSoftmaxWithLoss."""

    output: Tensor
    loss: Tensor


AdaptiveOutput.__name__ = "_ASMoutput"  # as PyTorch prints it


class AdaptiveLogSoftmaxWithLoss(Module):
    """Approximates a softmax over many classes, sorted by falling frequency: Grave et al., 2017.

    The outputs of `head` are the most frequent classes and one class for each cluster of the
    others. tail[i] has the classes of cluster i, after a projection to fewer features.

    in_features: size of an input
    n_classes: number of classes
    cutoffs: increasing class numbers: the clusters are [cutoffs[i], cutoffs[i + 1])
    div_value: cluster i has in_features / div_value ** (i + 1) features
    head_bias: whether head has a bias
    device, dtype: of the parameters
    """

    __module__ = "tt.nn"

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: device | str | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        bounds = [0, *cutoffs, n_classes]
        rising = all(isinstance(c, int) for c in cutoffs) and all(
            low < high for low, high in zip(bounds, bounds[1:])
        )
        if not rising:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            features = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            first = Linear(in_features, features, False, device, dtype)
            self.tail.append(Sequential(first, Linear(features, classes, False, device, dtype)))

    def reset_parameters(self) -> None:
        """Gives the parameters new initial values."""
        for m in self.modules():
            if isinstance(m, Linear):
                m.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> AdaptiveOutput:
        """Returns the log probability of each target, and minus their mean.

        input_: (N, in_features) or (in_features). target_: (N) or (), classes.
        """
        check_target(input_, target_)
        batched = target_.ndim > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        self._check_classes(target)
        column = target.clone()  # of head's result
        output = ops.zeros(target.shape, dtype=input.dtype, device=input.device)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).argwhere().reshape(-1)
            if not rows.numel():
                continue
            column[rows] = self.shortlist_size + i
            chances = self.tail[i](input[rows]).log_softmax(1)
            own = chances.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
            output = output.index_add(0, rows, own)
        head = self.head(input).log_softmax(1)
        output = output + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return AdaptiveOutput(output if batched else output.squeeze(0), loss)

    def _check_classes(self, target: Tensor) -> None:
        if not target.numel():
            return
        least, most = int(target.min().item()), int(target.max().item())
        if least < 0 or most >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], "
                f"but values in range [{least}, {most}] were found. "
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """Returns the log probabilities (N, n_classes) of all classes for (N, in_features)."""
        return self._log_prob(input, self.head(input))

    def _log_prob(self, input: Tensor, head: Tensor) -> Tensor:
        chances = head.log_softmax(1)
        parts = [chances[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            of_cluster = chances[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(cluster(input).log_softmax(1) + of_cluster)
        return ops.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Returns the most probable class of each row of the input."""
        head = self.head(input)
        output = head.argmax(1)
        rows = (output >= self.shortlist_size).argwhere().reshape(-1)
        if rows.numel():
            output[rows] = self._log_prob(input[rows], head[rows]).argmax(1)
        return output


def check_target(input: Tensor, target: Tensor) -> None:
    """Checks that targets are a vector as long as the batch, or 0-dim without a batch."""
    if target.ndim == 1:
        if input.ndim != 2:
            raise RuntimeError(
                "1D target tensor expects 2D input tensors, but found inputs with "
                f"size {tuple(input.shape)}"
            )
        if input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
    elif target.ndim == 0:
        if input.ndim != 1:
            raise RuntimeError(
                "0D target tensor expects 1D input tensors, but found inputs with "
                f"size {tuple(input.shape)}"
            )
    else:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
