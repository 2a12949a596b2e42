"""Hardtanh with the former names of its arguments."""
from __future__ import annotations

import warnings

from . import _layers


class Hardtanh(_layers.Hardtanh):
    __doc__ = _layers.Hardtanh.__doc__
    __module__ = "tt.nn"
    _class = "Hardtanh"

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        former = {"min_value": (min_value, "min_val"), "max_value": (max_value, "max_val")}
        for name, (given, new) in former.items():
            if given is not None:
                warnings.warn(
                    f"Hardtanh: {name} is deprecated and renamed to {new}",
                    FutureWarning,
                    stacklevel=2,
                )
        lower = min_val if min_value is None else min_value
        upper = max_val if max_value is None else max_value
        if not upper > lower:
            raise AssertionError(f"Hardtanh: max_val is {upper}: must be above min_val {lower}")
        super().__init__(lower, upper, inplace)
