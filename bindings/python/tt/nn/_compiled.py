"""The result of tt.compile for a module."""
from __future__ import annotations

from typing import Any

from ..compiler import Compiled
from .module import Module


class OptimizedModule(Module):
    """A module whose calls are recorded and replayed: tt.compile(module). It has the attributes of
    the module, which is its child `_orig_mod`."""

    def __init__(self, module: Module, fullgraph: bool = False, dynamic: bool = False) -> None:
        super().__init__()
        self._orig_mod = module
        self.training = module.training
        self.__dict__["_compiled"] = Compiled(module.__call__, fullgraph, dynamic)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name in modules:
            return modules[name]
        return getattr(modules["_orig_mod"], name)
