"""ctc_loss of torch.nn.functional."""
from __future__ import annotations

from typing import Sequence, Union

from .. import _ops
from .._create import tensor
from .._dtype_names import int64
from .._interception import overridable
from .._tensor import Tensor

Lengths = Union[Tensor, int, Sequence[int]]


def _lengths(lengths: Lengths, like: Tensor) -> Tensor:
    """Returns lengths as a tensor."""
    if isinstance(lengths, Tensor):
        return lengths
    return tensor(lengths, dtype=int64, device=like.device)


@overridable
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification loss.

    log_probs: (T, N, C) or (T, C), as log_softmax returns them
    targets: classes: (N, S), or those of all samples in turn; (S) without a batch
    input_lengths: lengths of the sequences, at most T: (N) or ()
    target_lengths: lengths of the targets: (N) or ()
    blank: class of the blank symbol
    reduction: "none", "sum" or "mean", of the losses divided by the lengths of their targets
    zero_infinity: replaces infinite losses, of targets longer than their sequence, by 0
    """
    return _ops.ctc_loss(
        log_probs,
        targets,
        _lengths(input_lengths, log_probs),
        _lengths(target_lengths, log_probs),
        blank,
        reduction,
        zero_infinity,
    )
