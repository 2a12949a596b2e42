"""SparseAdam, which updates rows of sparse gradients."""
from __future__ import annotations

from .._tensor import Tensor
from .matrix import loss_of
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .optimizer import Params


class SparseAdam(Optimizer):
    """Adam for sparse gradients. As in PyTorch, dense gradients are an error.

    tt's gradients are dense, so step() raises RuntimeError if there are any: use Adam.

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
        """Raises RuntimeError if a parameter has a gradient. Returns the result of closure."""
        loss = loss_of(closure)
        for group in self.param_groups:
            if any(p.grad is not None for p in group["params"]):
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
        return loss
