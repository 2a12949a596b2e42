"""Adafactor and Muon with PyTorch's arguments, some of which are several numbers in C."""
from __future__ import annotations

from math import isnan
from typing import Any, Literal

from . import _optimizers
from .._tensor import Tensor
from .optimizer import Params


def joined(rows: tuple[Any, ...], key: str, parts: str, kind: Any) -> tuple[Any, ...]:
    """Returns the values of a group with `parts`, names in C, as the tuple `key`."""
    names = tuple(parts.split())
    return (*(row for row in rows if row[0] not in names), (key, names, kind))


def unless_nan(x: float) -> float | None:
    return None if isnan(x) else x


class Adafactor(_optimizers.Adafactor):
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
    _values = joined(_optimizers.Adafactor._values, "eps", "eps1 eps2", unless_nan)

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
        self._initialize(
            params=params,
            lr=lr,
            beta2_decay=beta2_decay,
            eps=eps,
            d=d,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
        )


class Muon(_optimizers.Muon):
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
    _values = joined(_optimizers.Muon._values, "ns_coefficients", "ns_a ns_b ns_c", float)

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
        adjust_lr_fn: (Literal["original", "match_rms_adamw", "spectral_unclamped"] | None) = None,
    ) -> None:
        self._initialize(
            params=params,
            lr=lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_coefficients=ns_coefficients,
            eps=eps,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
        )
