"""Adafactor and Muon, which treat a parameter as a matrix, implemented with tensor operators."""
from __future__ import annotations

import math
from typing import Any, Callable

from .. import _ops as ops
from .._limits import finfo
from .._tensor import Tensor
from ..autograd import enable_grad, no_grad
from .optimizer import Optimizer, refuse_sparse_grads
from .optimizer import Params


def loss_of(closure: Callable[[], Any] | None) -> Any:
    if closure is None:
        return None
    with enable_grad():
        return closure()


def move_towards(x: Tensor, y: Tensor, share: float) -> None:
    """x += share * (y - x). The result is exactly y if share is 1."""
    if share < 0.5:
        x.add_(y - x, alpha=share)
    else:
        x.copy_(y - (y - x) * (1 - share))


def at_least_0(name: str, value: float | Tensor) -> None:
    if not float(value) >= 0:
        raise ValueError(f"{name} is {float(value)}: must be at least 0")


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern 2018): divides the gradient by the root of a running average of
    its square. For a matrix, only the means of rows and columns are kept. The step size is relative
    to the size of the parameter.

    params: parameters to optimize: leaf tensors of a floating-point dtype
    lr: learning rate, an upper bound of the relative step size 1 / sqrt(step)
    beta2_decay: step^beta2_decay is the weight of each new squared gradient in the average
    eps: lower bounds of the root of the average, by default the dtype's eps, and of the parameter's
        size in the step size
    d: updates with a larger root mean square are scaled down to it
    weight_decay: weight decay coefficient
    maximize: whether to maximize the objective instead of minimizing it
    """

    __module__ = "tt.optim"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"lr has shape {tuple(lr.shape)}: must have one element")
        at_least_0("lr", lr)
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay is {beta2_decay}: must be at most 0")
        if eps[0] is not None:
            at_least_0("eps[0]", eps[0])
        at_least_0("eps[1]", eps[1])
        if not d >= 1:
            raise ValueError(f"d is {d}: must be at least 1")
        at_least_0("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    @no_grad
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters from their gradients.

        closure: called first, with gradients recorded; it recomputes the loss and its gradients.
            Its result is returned.
        """
        loss = loss_of(closure)
        refuse_sparse_grads("Adafactor", self._params())
        for group in self.param_groups:
            for p in group["params"]:
                if p.is_complex():
                    raise RuntimeError("Adafactor does not support complex parameters")
                if p.grad is not None:
                    self._update(p, -p.grad if group["maximize"] else p.grad, group)
        return loss

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["step"] = ops.zeros(())
            if g.ndim > 1:
                *most, rows, columns = g.shape
                where: Any = {"dtype": g.dtype, "device": g.device}
                state["row_var"] = ops.zeros((*most, rows, 1), **where)
                state["col_var"] = ops.zeros((*most, 1, columns), **where)
            else:
                state["variance"] = ops.zeros_like(g)
        state["step"] += 1
        step, lr = state["step"].item(), float(group["lr"])
        least, smallest = group["eps"]
        least = finfo(p.dtype).eps if least is None else least
        share = step ** group["beta2_decay"]
        size = p.norm().item() / math.sqrt(p.numel()) if p.numel() else 0.0
        rate = max(smallest, size) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if g.ndim > 1:
            of_rows, of_columns = state["row_var"], state["col_var"]
            square = g * g
            move_towards(of_rows, square.mean(dim=-1, keepdim=True), share)
            move_towards(of_columns, square.mean(dim=-2, keepdim=True), share)
            v = (of_rows @ of_columns) / of_rows.mean(dim=-2, keepdim=True).clamp(min=least)
        else:
            move_towards(state["variance"], g * g, share)
            v = state["variance"]
        update = v.clamp(min=least * least).rsqrt() * g
        length = update.norm().item() / (math.sqrt(max(1, update.numel())) * group["d"])
        p.add_(update, alpha=-rate / max(1.0, length))


class Muon(Optimizer):
    """Muon (Jordan et al. 2024), for the matrices of hidden layers. A Newton-Schulz iteration in
    bfloat16 replaces the momentum of each gradient by an approximation of the nearest orthogonal
    matrix.

    params: parameters to optimize: leaf tensors of two dimensions
    lr: learning rate
    weight_decay: the parameter is multiplied by 1 - lr * weight_decay
    momentum: decay rate of the running average of the gradient
    nesterov: whether to use Nesterov momentum
    ns_coefficients: a, b and c of the iteration x = a x + (b x xᵀ + c (x xᵀ)²) x
    eps: lower bound of the norm by which the momentum is first divided
    ns_steps: number of iterations
    adjust_lr_fn: "original" or None multiplies the step by sqrt(max(1, rows / columns)),
        "match_rms_adamw" by 0.2 * sqrt(max(rows, columns)), "spectral_unclamped" by
        sqrt(rows / columns)
    """

    __module__ = "tt.optim"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"lr has shape {tuple(lr.shape)}: must have one element")
        at_least_0("lr", lr)
        at_least_0("momentum", momentum)
        at_least_0("weight_decay", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw", "spectral_unclamped"):
            raise ValueError(
                f"adjust_lr_fn is {adjust_lr_fn!r}: must be 'original', 'match_rms_adamw' or "
                "'spectral_unclamped'"
            )
        if ns_steps >= 100:
            raise ValueError(f"ns_steps is {ns_steps}: must be less than 100")
        if len(ns_coefficients) != 3:
            raise ValueError(f"ns_coefficients has {len(ns_coefficients)} numbers: must have 3")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for p in self._params():
            if p.ndim != 2:
                raise ValueError(
                    f"a parameter has shape {tuple(p.shape)}: Muon optimizes matrices only"
                )

    @no_grad
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters from their gradients.

        closure: called first, with gradients recorded; it recomputes the loss and its gradients.
            Its result is returned.
        """
        loss = loss_of(closure)
        refuse_sparse_grads("Muon", self._params())
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, group)
        return loss

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        if p.ndim != 2:
            raise ValueError(f"a parameter has shape {tuple(p.shape)}: Muon optimizes matrices")
        state, lr, momentum = self.state[p], float(group["lr"]), group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = ops.zeros_like(g)
        average = state["momentum_buffer"]
        move_towards(average, g, 1 - momentum)
        update = average
        if group["nesterov"]:
            update = g.clone()
            move_towards(update, average, momentum)
        update = orthogonalized(
            update, group["ns_coefficients"], group["ns_steps"], group["eps"]
        ).to(p.dtype)
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        elif group["adjust_lr_fn"] == "spectral_unclamped":
            scale = math.sqrt(rows / columns)
        else:
            scale = math.sqrt(max(1.0, rows / columns))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update, alpha=-lr * scale)


def orthogonalized(
    x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Returns an approximation of the nearest orthogonal matrix to x, in bfloat16."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    y = x.bfloat16()
    if tall:
        y = y.transpose(0, 1)
    y = y / y.norm().clamp(min=eps)
    for _ in range(steps):
        gram = y @ y.transpose(0, 1)
        y = ops.addmm(y, ops.addmm(gram, gram, gram, beta=b, alpha=c), y, beta=a)
    return y.transpose(0, 1) if tall else y
