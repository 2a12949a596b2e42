"""backward and grad: gradients of tensors and of graphs."""
from __future__ import annotations

from typing import Any, Sequence, overload

from .._tensor_facts import TensorFacts
from .._handles import backward as backward_all
from .._handles import grad as grad_of_one
from .._layout import SparseGrads
from .._tensor import Tensor
from ._edges import tensors_of
from ._edges import GradientEdge


def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
) -> None:
    """Computes the gradients of tensors and adds them to the .grad of the leaves.

    grad_tensors[i] is the gradient of tensors[i]; None: 1. retain_graph: keeps the graph for
    another backward; default: create_graph. create_graph: records the computation of the gradients.
    inputs: the tensors that receive gradients, by default all leaves; of the others, those that are
    no leaves retain their gradients from now on. grad_variables: the former name of grad_tensors.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("backward: takes either grad_tensors or grad_variables")
        grad_tensors = grad_variables
    receivers = tensors_of(inputs)
    if receivers is not None:
        receivers = [receivers] if isinstance(receivers, TensorFacts) else list(receivers)
        for t in receivers:
            if isinstance(t, TensorFacts) and not t.is_leaf:
                t.retain_grad()
    given = tensors_of(tensors), grad_tensors, retain_graph, create_graph, receivers
    if not SparseGrads.seen:
        backward_all(*given)
        return
    from .. import _sparse_grad

    with _sparse_grad.backward_that(accumulates=True, inputs=receivers):
        backward_all(*given)


@overload
def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: dict[Any, Any],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool | None = None,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> dict[Any, Tensor]:
    ...


@overload
def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool | None = None,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    ...


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Any,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool | None = None,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Returns the gradients of outputs with respect to inputs, without changing .grad.

    inputs: a tensor or a GradientEdge, a sequence of them, for which it returns a tuple, or a dict,
    for which it returns a dict.

    grad_outputs[i] is the gradient of outputs[i]; None: 1. retain_graph: keeps the graph for
    another backward; default: create_graph. create_graph: records the computation of the gradients.
    allow_unused: returns None for an input on which the outputs do not depend, instead of raising;
    materialize_grads: returns zeros. only_inputs is ignored. is_grads_batched: grad_outputs and
    results have an additional first dimension, with one backward for each index.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: allow_unused is False: with materialize_grads it must be True")
    if isinstance(inputs, dict):
        found = grad(
            outputs,
            list(inputs.values()),
            grad_outputs,
            retain_graph,
            create_graph,
            only_inputs,
            allow_unused,
            is_grads_batched,
            materialize_grads,
        )
        return dict(zip(inputs, found))
    compute: Any = batched_grad if is_grads_batched else grad_of_one
    given = tensors_of(outputs), tensors_of(inputs), grad_outputs, retain_graph, create_graph
    options = {"allow_unused": allow_unused, "materialize_grads": materialize_grads}
    if not SparseGrads.seen:
        return compute(*given, **options)
    from .. import _sparse_grad

    with _sparse_grad.backward_that(accumulates=False):
        return compute(*given, **options)


def batched_grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any,
    retain_graph: bool | None,
    create_graph: bool | None,
    **options: Any,
) -> tuple[Any, ...]:
    """Returns the stacked gradients for the slices of grad_outputs."""
    from .. import _ops as ops

    given = list(grad_outputs) if isinstance(grad_outputs, (list, tuple)) else [grad_outputs]
    sizes = {g.shape[0] for g in given if g is not None and g.ndim}
    if len(sizes) != 1 or any(g is None or not g.ndim for g in given):
        raise RuntimeError(
            "grad: with is_grads_batched all grad_outputs must be tensors of the same first size"
        )
    keep = bool(create_graph) if retain_graph is None else retain_graph
    n = sizes.pop()
    if not n:
        raise RuntimeError("grad: grad_outputs of size 0 with is_grads_batched")
    rows = [
        grad_of_one(
            outputs, inputs, [g[i] for g in given], keep or i < n - 1, create_graph, **options
        )
        for i in range(n)
    ]
    return tuple(None if column[0] is None else ops.stack(column) for column in zip(*rows))
