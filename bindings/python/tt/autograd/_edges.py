"""GradientEdge: the place of a tensor in the autograd graph."""
from __future__ import annotations

from typing import Any, NamedTuple

import tt

from .._tensor_facts import TensorFacts
from .._tensor import Tensor


class GradientEdge(NamedTuple):
    """A tensor as the result output_nr of a node: grad and backward take it in its place.

    ownership_token: the tensor itself, which the edge keeps alive.
    """

    node: tt.autograd.graph.Node | tt.autograd.graph.AccumulateGrad
    output_nr: int
    ownership_token: Tensor | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Returns the edge of a tensor that requires a gradient: (node, output_nr, tensor). The node of
    a leaf is an AccumulateGrad."""
    from .graph import AccumulateGrad

    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: tensor does not require a gradient")
    node = tensor.grad_fn
    return GradientEdge(AccumulateGrad(tensor) if node is None else node, tensor.output_nr, tensor)


def tensors_of(given: Any) -> Any:
    """Returns tensors and sequences of them with the tensors of edges in place of these."""
    if isinstance(given, TensorFacts) or given is None:
        return given
    if isinstance(given, GradientEdge):
        return tensor_of(given)
    return [tensor_of(t) if isinstance(t, GradientEdge) else t for t in given]


def tensor_of(edge: GradientEdge) -> Any:
    tensor = edge.ownership_token
    if tensor is None:  # an edge of next_functions
        tensor = getattr(edge.node, "variable", None)
    if not isinstance(tensor, TensorFacts):
        raise TypeError(f"the edge of {edge.node} has no tensor: use get_gradient_edge(tensor)")
    return tensor
