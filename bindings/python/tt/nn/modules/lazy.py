"""Layers that find their sizes at the first call, under the name of PyTorch's module."""
from ..lazy import *  # noqa: F403
from ..lazy import LazyModuleMixin as LazyModuleMixin
from ..lazy import __all__ as __all__
