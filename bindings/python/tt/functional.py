"""Functions of tt that torch.functional has, too."""
from __future__ import annotations

from typing import Any

__all__ = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
    "cartesian_prod cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft "
    "svd_lowrank tensordot unique unique_consecutive unravel_index"
).split()


def __getattr__(name: str) -> Any:
    """Returns the function of tt."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(__package__ or "tt"), name)


def __dir__() -> list[str]:
    return __all__
