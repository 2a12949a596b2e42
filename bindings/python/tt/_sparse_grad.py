"""Sparse gradients of leaves: those of tables that are looked up with sparse=True.

C knows dense gradients only. The sparse one of a leaf is an attribute of its Python object, which
Tensor.grad returns. Optimizers, clipping and scaling ask `params_with_sparse_grads`.
"""
from __future__ import annotations

from contextlib import contextmanager
from threading import local
from typing import Any, Generator, Iterable

import tt

from . import _ops as ops
from ._layout import SparseGrads
from ._positions import note_read
from ._tensor import Tensor
from ._types import int64
from .autograd import is_grad_enabled, no_grad
from .autograd.function import Function
from .optim.optimizer import params_with_sparse_grads, refuse_sparse_grads
from .sparse import SparseTensor


class Running(local):
    """What this thread's innermost backward does with the sparse gradients of leaves.

    accumulates: adds them to .grad. Else they are made dense for the graph, as autograd.grad and
    the transforms of tt.func want them. only: the tt_tensors of the leaves that receive gradients;
    None: all.
    """

    accumulates = False
    only: set[int | None] | None = None


running = Running()


@contextmanager
def backward_that(
    accumulates: bool, inputs: Iterable[Tensor] | None = None
) -> Generator[None, None, None]:
    """Sets what the thread's backward within the block does."""
    before = running.accumulates, running.only
    running.accumulates = accumulates
    running.only = None if inputs is None else {getattr(t, "_address", None) for t in inputs}
    try:
        yield
    finally:
        running.accumulates, running.only = before


class Embedding(Function):
    """Looks up the rows of a leaf. Its gradient is sparse if backward() adds it to .grad."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor, padding_idx: int | None) -> Tensor:
        rows = ops.embedding(input, weight.detach(), padding_idx)
        ctx.weight, ctx.padding_idx = weight, padding_idx
        ctx.save_for_backward(input)
        return rows

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, None]:
        weight = ctx.weight
        indices = ctx.saved_tensors[0].reshape(-1).to(int64)
        values = grad.reshape(indices.shape[0], weight.shape[1])
        if ctx.padding_idx is not None:
            kept = indices != ctx.padding_idx % weight.shape[0]
            indices, values = indices[kept], values[kept]
        of_weight = SparseTensor(indices.unsqueeze(0), values, weight.shape)
        only = running.only
        if not running.accumulates or only is not None and weight._address not in only:
            return None, of_weight.to_dense(), None
        with no_grad():
            before = weight.grad
            weight.grad = of_weight if before is None else of_weight + before
        return None, None, None


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None) -> Tensor:
    """Returns the rows of weight, a leaf, at input."""
    SparseGrads.seen = True
    if weight.requires_grad and is_grad_enabled():
        note_read()  # a record would have a dense gradient
    return Embedding.apply(input, weight, padding_idx)


def table_of_rows(
    input: Tensor, weight: Tensor, padding_idx: int | None
) -> tuple[Tensor, Tensor, int | None]:
    """Returns the rows of weight, a leaf, at input as a table of their own, and input and
    padding_idx as indices into it."""
    indices = input.reshape(-1)
    n = indices.shape[0]
    order = ops.arange(n, device=input.device)
    if padding_idx is None:
        return embedding(indices, weight, None), order.reshape(input.shape), None
    padding = ops.full_like(indices[:1], padding_idx % weight.shape[0])
    order = ops.where(indices == padding, n, order)
    rows = embedding(ops.cat([indices, padding]), weight, padding_idx)
    return rows, order.reshape(input.shape), n


def zero(params: Iterable[Tensor], set_to_none: bool) -> None:
    """Removes sparse gradients, or their elements."""
    for p in params_with_sparse_grads(params):
        p.grad = None if set_to_none else p.grad.zero_()


@contextmanager
def as_dense_leaves(params: Iterable[Any]) -> Generator[list[Tensor], None, None]:
    """Gives leaves with dense gradients: for a sparse one the values of its distinct places, whose
    changes become the parameter's."""
    leaves, sparse = [], []
    for p in params:
        grad = p.grad
        if grad is None or not grad.is_sparse:
            leaves.append(p)
            continue
        grad = grad.coalesce()
        leaf = ops.empty_like(grad.values(), requires_grad=True)
        leaf.grad = grad.values().clone()
        leaves.append(leaf)
        sparse.append((p, grad, leaf))
    yield leaves
    for p, grad, leaf in sparse:
        p.grad = grad._with(leaf.grad)


# ---- optimizers ----


def step(optimizer: tt.optim.native.NativeOptimizer) -> None:
    """A step of an optimizer of C. SGD without momentum and weight decay changes the rows of a
    sparse gradient; SGD and Adagrad make others dense for the step."""
    name = optimizer._class
    if name not in ("SGD", "Adagrad"):
        refuse_sparse_grads(name, optimizer._params())
    made_dense = []
    for group in optimizer.param_groups:
        of_rows = name == "SGD" and group["momentum"] == 0 and group["weight_decay"] == 0
        for p in params_with_sparse_grads(group["params"]):
            if of_rows:
                descend(p, p.grad, group["lr"], group["maximize"])
            else:
                made_dense.append((p, p.grad))
    try:
        for p, grad in made_dense:
            p.grad = grad.to_dense()
        optimizer._step()
    finally:
        for p, grad in made_dense:
            p.grad = grad


def descend(p: Tensor, grad: SparseTensor, lr: float, maximize: bool) -> None:
    with no_grad():
        alpha = lr if maximize else -lr
        p.index_add_(0, grad._indices()[0], grad._values(), alpha=alpha)
