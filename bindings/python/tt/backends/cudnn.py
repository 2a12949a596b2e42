"""cuDNN, which computes convolutions and attention on CUDA devices where it is found. Its switches
are enabled, deterministic and allow_tf32; benchmark is accepted and ignored."""
from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import Iterator

from .. import _cuda_math

TYPE_CHECKING = False
if TYPE_CHECKING:
    enabled: bool
    deterministic: bool
    allow_tf32: bool

__all__ = [
    "allow_tf32",
    "benchmark",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "version",
]
benchmark = False


class Switches(ModuleType):
    """This module, whose switches are those of the contexts."""

    @property
    def enabled(self) -> bool:
        """Whether cuDNN may compute convolutions; at first True."""
        return _cuda_math.chosen["cudnn"]

    @enabled.setter
    def enabled(self, on: bool) -> None:
        _cuda_math.choose(cudnn=bool(on))

    @property
    def deterministic(self) -> bool:
        """Whether its results have the same bits in every run; at first True."""
        return _cuda_math.chosen["deterministic"]

    @deterministic.setter
    def deterministic(self, on: bool) -> None:
        _cuda_math.set_deterministic("cudnn", bool(on))

    @property
    def allow_tf32(self) -> bool:
        """Whether it may round float32 to TF32 in convolutions; at first False."""
        return _cuda_math.chosen["conv_tf32"]

    @allow_tf32.setter
    def allow_tf32(self, on: bool) -> None:
        _cuda_math.choose(conv_tf32=bool(on))


sys.modules[__name__].__class__ = Switches


def is_available() -> bool:
    """Returns False: whether there is a cuDNN is known once a convolution needs it."""
    return False


def version() -> None:
    """Returns None: whether there is a cuDNN is known once a convolution needs it."""


def is_acceptable(tensor: object) -> bool:
    """Returns False: whether there is a cuDNN is known once a convolution needs it."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Sets cuDNN's switches in a block."""
    before = dict(_cuda_math.deterministic_switches)
    with _cuda_math.choice(cudnn=enabled, conv_tf32=allow_tf32, deterministic=True):
        _cuda_math.set_deterministic("cudnn", bool(deterministic))
        try:
            yield
        finally:
            _cuda_math.deterministic_switches.clear()
            _cuda_math.deterministic_switches.update(before)
