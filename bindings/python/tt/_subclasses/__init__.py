"""The names of torch._subclasses: tt has no tensors without values but those of device meta."""
from __future__ import annotations

from .fake_tensor import FakeTensor as FakeTensor
from .fake_tensor import FakeTensorMode as FakeTensorMode
