"""Anomaly mode: backward raises where a gradient contains nan."""
from __future__ import annotations

from .._handles import switch_anomaly
from .grad_mode import set_grad_enabled

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def set_detect_anomaly(mode: bool, check_nan: bool = True) -> set_grad_enabled:
    """Makes backward raise at the first operator whose gradient contains nan, with its name.

    It takes effect immediately; as a context manager, until the end of the block.
    """
    return set_grad_enabled(mode and check_nan, switch_anomaly)


def detect_anomaly(check_nan: bool = True) -> set_grad_enabled:
    """Calls set_detect_anomaly(True)."""
    return set_detect_anomaly(True, check_nan)


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switches anomaly mode, until the next call."""
    switch_anomaly(mode and check_nan)


def is_anomaly_check_nan_enabled() -> bool:
    """Returns whether anomaly mode is on: nan is all that it checks."""
    from .._handles import is_anomaly_enabled

    return is_anomaly_enabled()
