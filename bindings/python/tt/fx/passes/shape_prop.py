"""Runs a traced graph and notes the shape and dtype of each result."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from ..._layout import strided
from ..._tensor import Tensor
from ..._types import contiguous_format
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(
    namedtuple(
        "TensorMetadata", "shape dtype requires_grad stride memory_format is_quantized qparams"
    )
):
    """Shape, dtype, strides and memory format of a tensor."""

    __slots__ = ()


def metadata_of(x: Tensor) -> TensorMetadata:
    """Returns what is known of a tensor."""
    dense = x.layout is strided and x.is_contiguous()
    kept = contiguous_format if dense else None
    return TensorMetadata(x.shape, x.dtype, x.requires_grad, x.stride(), kept, False, {})


class ShapeProp(Interpreter):
    """Gives each node meta["tensor_meta"] and meta["type"] of its value.

    ShapeProp(module).propagate(*inputs) runs the module.
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = []

        def note(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            found.append(x)
            return metadata_of(x)

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the module with these inputs."""
        return super().run(*args)
