"""Containers of tensors that tt.vmap takes apart and puts together, such as TensorDict.

A container has the methods that PyTorch's vmap calls: _add_batch_dim, which hides a dimension of
each tensor from the function, and _maybe_remove_batch_dim, which shows it again. They call the
functions of torch._C._functorch below for each tensor.
"""
from __future__ import annotations

from typing import Any, Callable

from ._tensor import Tensor
from ._depth import depth


def is_container(x: Any) -> bool:
    """Returns whether vmap looks for tensors in x by its methods."""
    return hasattr(x, "_add_batch_dim") and not isinstance(x, (Tensor, type))


def is_batchable(x: Any) -> bool:
    """Returns whether vmap gives each sample its part of x."""
    return isinstance(x, Tensor) or is_container(x)


def changed(container: Any, change: Callable[[Tensor, int], Tensor], **dims: Any) -> Any:
    """Returns a container with change(tensor, dim) in place of each tensor.

    dims: `in_dim`, the dimension to hide, or `out_dim` and `batch_size`, the one to show. The
    method is called on a shallow copy: a locked TensorDict keeps what its methods return.
    """
    outer, depth.batching = depth.batching, change
    copy = container.clone(False)
    try:
        if "in_dim" in dims:
            return copy._add_batch_dim(vmap_level=depth.vmap, **dims)
        return copy._maybe_remove_batch_dim(funcname="vmap", vmap_level=depth.vmap, **dims)
    finally:
        depth.batching = outer


def parts(container: Any, dim: int) -> list[tuple[Tensor, int]]:
    """Returns the tensors of a container, with the dimension of each that vmap hides."""
    found = []

    def take(tensor: Tensor, dim: int) -> Tensor:
        found.append((tensor, dim))
        return tensor.select(dim, 0)

    changed(container, take, in_dim=dim)
    if not found:
        raise ValueError(f"vmap: {type(container).__name__} gives no tensor for dimension {dim}")
    return found


def results(container: Any, size: int) -> list[Tensor]:
    """Returns the tensors of a container that a function returned for one of `size` samples."""
    found = []

    def take(tensor: Tensor, dim: int) -> Tensor:
        found.append(tensor)
        return tensor.unsqueeze(0).expand(size, *tensor.shape)

    changed(container, take, out_dim=0, batch_size=size)
    return found


def _change(name: str, tensor: Tensor, dim: int) -> Tensor:
    """Does with a container's tensor what vmap asks for at the moment."""
    if depth.batching is None:
        raise NotImplementedError(
            f"{name}: the dimensions of samples belong to tt.vmap, which alone adds and removes "
            "them"
        )
    return depth.batching(tensor, dim)


def _add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Tensor:
    """Hides a dimension of a container's tensor."""
    return _change("_add_batch_dim", tensor, in_dim)


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """Shows the dimension again."""
    return _change("_remove_batch_dim", tensor, out_dim)


def _maybe_remove_batch_dim(
    name: str, batched_output: Tensor, vmap_level: int, batch_size: int, out_dim: int
) -> Tensor:
    """Shows the dimension again."""
    return _change("_maybe_remove_batch_dim", batched_output, out_dim)
