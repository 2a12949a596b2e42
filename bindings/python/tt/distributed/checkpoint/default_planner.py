"""Planners, under the name of PyTorch's module."""
from __future__ import annotations

from ..._absent import absent_class
from . import DefaultLoadPlanner as DefaultLoadPlanner
from . import DefaultSavePlanner as DefaultSavePlanner

_EmptyStateDictLoadPlanner = absent_class(
    "distributed.checkpoint.default_planner._EmptyStateDictLoadPlanner",
    "a checkpoint of tt is loaded into the tensors of a state dict",
)
