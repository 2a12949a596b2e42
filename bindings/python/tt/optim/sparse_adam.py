"""SparseAdam, which updates rows of sparse gradients."""
from __future__ import annotations

import math
from typing import Any, Callable

import tt

from .. import _ops as ops
from .._tensor import Tensor
from ..autograd import enable_grad, no_grad
from .optimizer import Optimizer
from .optimizer import Params


class SparseAdam(Optimizer):
    """Adam for sparse gradients, those of embeddings with sparse=True. A step changes the rows that
    a gradient lists, and their averages only. As in PyTorch, dense gradients are an error.

    params: parameters to optimize
    lr: learning rate
    betas: coefficients of the running averages of the gradient and of its square
    eps: added to the denominator
    maximize: whether to maximize the objective instead of minimizing it
    """

    __module__ = "tt.optim"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if not float(lr) > 0:
            raise ValueError(f"lr is {float(lr)}: must be greater than 0")
        if not eps > 0:
            raise ValueError(f"eps is {eps}: must be greater than 0")
        for i, beta in enumerate(betas):
            if not 0 <= beta < 1:
                raise ValueError(f"betas[{i}] is {beta}: must be in [0, 1)")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        if any(p.is_complex() for p in self._params()):
            raise ValueError("SparseAdam does not support complex parameters")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters from their gradients. Returns the result of closure. Raises
        RuntimeError if a gradient is dense."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        given = [(p, group) for group in self.param_groups for p in group["params"]]
        if any(p.grad is not None and not p.grad.is_sparse for p, _ in given):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        with no_grad():
            for p, group in given:
                if p.grad is not None:
                    self._update(p, p.grad.coalesce(), group)
        return loss

    def _update(self, p: Tensor, grad: tt.sparse.SparseTensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = ops.zeros_like(p), ops.zeros_like(p)
        state["step"] += 1
        if not grad._nnz():
            return
        places = tuple(grad.indices().unbind(0))
        g = -grad.values() if group["maximize"] else grad.values()
        beta1, beta2 = (float(beta) for beta in group["betas"])
        mean = ops.lerp(state["exp_avg"][places], g, 1 - beta1)
        square = ops.lerp(state["exp_avg_sq"][places], g * g, 1 - beta2)
        state["exp_avg"][places] = mean
        state["exp_avg_sq"][places] = square
        step = state["step"]
        size = float(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        p[places] -= size * mean / (square.sqrt() + group["eps"])
