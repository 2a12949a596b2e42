"""Imports of torch.NAME as tt.NAME, and the version of a distribution torch, after as_torch()."""
from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Iterable, Sequence


class TorchDistribution(Distribution):
    """What importlib.metadata tells about "torch"."""

    def __init__(self, version: str) -> None:
        self.text = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


class TorchFinder(DistributionFinder, Loader):
    """Finds torch.NAME, which is the module tt.NAME itself, not a copy of it."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.specs: dict[str, Any] = {}  # of modules of tt that are being imported as torch's

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("torch."):
            return None
        name = "tt" + fullname[len("torch") :]
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            return None
        self.specs[fullname] = module.__spec__
        return ModuleSpec(fullname, self, is_package=hasattr(module, "__path__"))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return sys.modules["tt" + spec.name[len("torch") :]]

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = self.specs.pop(module.__spec__.name)

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        if context is not None and context.name == "torch":
            yield TorchDistribution(self.version)
