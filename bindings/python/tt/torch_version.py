"""The class of versions that programs compare, with the API of torch.torch_version."""
from __future__ import annotations

import re
from typing import Any

from ._lib import VERSION

__all__ = ["TorchVersion", "Version"]
STAGES = {"dev": 0, "a": 1, "b": 2, "rc": 3}  # before a release, which is 4


def key_of(version: Any) -> tuple[Any, ...]:
    """Returns what orders versions: their numbers and the stage before the release."""
    text = ".".join(map(str, version)) if isinstance(version, (tuple, list)) else str(version)
    match = re.match(r"v?(\d+(?:\.\d+)*)(?:\.?(dev|a|b|rc)(\d*))?", text)
    if match is None:
        raise ValueError(f"TorchVersion: version is {text!r}: must begin with a number")
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), STAGES.get(match[2], 4), int(match[3] or 0)


class TorchVersion(str):
    """A version that is compared with others, strings and tuples by its numbers."""

    def __eq__(self, other: Any) -> bool:
        return key_of(self) == key_of(other)

    def __ne__(self, other: Any) -> bool:
        return key_of(self) != key_of(other)

    def __lt__(self, other: Any) -> bool:
        return key_of(self) < key_of(other)

    def __le__(self, other: Any) -> bool:
        return key_of(self) <= key_of(other)

    def __gt__(self, other: Any) -> bool:
        return key_of(self) > key_of(other)

    def __ge__(self, other: Any) -> bool:
        return key_of(self) >= key_of(other)

    def __hash__(self) -> int:
        return super().__hash__()


Version = TorchVersion
__version__ = TorchVersion(VERSION)


def __dir__() -> list[str]:
    return __all__
