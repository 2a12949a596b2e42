"""The names of torch._subclasses.fake_tensor."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

from .._absent import absent_class

WHY = "tt has no fake tensors; use those of device meta"
FakeTensor = absent_class("_subclasses.fake_tensor.FakeTensor", WHY)
FakeTensorMode = absent_class("_subclasses.fake_tensor.FakeTensorMode", WHY)


def is_fake(x: Any) -> bool:
    """Returns False."""
    return False


@contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """Yields None: no mode of fake tensors is active."""
    yield None
