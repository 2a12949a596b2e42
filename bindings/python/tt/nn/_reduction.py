"""Reductions of losses, with the functions of torch.nn._reduction."""
from __future__ import annotations

import warnings

from .._convert import legacy_reduction

NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Returns PyTorch's number of a reduction: "none", "mean" or "sum"."""
    if reduction not in NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """Returns the reduction that the former flags of losses stand for. None is True."""
    reduction: str = legacy_reduction(size_average, reduce)
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=2,
        )
    return reduction


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Returns get_enum(legacy_get_string(…))."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
