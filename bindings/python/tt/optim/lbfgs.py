"""LBFGS: the limited-memory BFGS method, implemented with tensor operators."""
from __future__ import annotations

import math

from .. import _ops as ops
from .._tensor import Tensor
from ..autograd import enable_grad, no_grad
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from .optimizer import Params

    # (step size) -> (loss, gradient there)
    Evaluate = Callable[[float], tuple[float, Tensor]]


class LBFGS(Optimizer):
    """The limited-memory BFGS method (Liu and Nocedal 1989). A step runs up to max_iter iterations
    and calls the closure several times. All parameters must be in one group.

    params: parameters to optimize: leaf tensors of a floating-point dtype
    lr: learning rate: the first step size of each iteration
    max_iter: iterations per step
    max_eval: calls of the closure per step; None: 1.25 * max_iter
    tolerance_grad: a step ends when no element of the gradient is larger
    tolerance_change: a step ends when parameters or loss change by less
    history_size: number of updates from which the Hessian is estimated
    line_search_fn: None uses each step size unchanged; "strong_wolfe" searches for one that meets
        the strong Wolfe conditions
    maximize: whether to maximize the objective instead of minimizing it
    """

    __module__ = "tt.optim"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        if not float(lr) >= 0:
            raise ValueError(f"lr is {float(lr)}: must be at least 0")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                f"LBFGS has one group of parameters, not {len(self.param_groups)}: "
                "it treats all parameters as one vector"
            )
        if any(p.is_complex() for p in self._params()):
            raise ValueError("LBFGS does not support complex parameters")

    def _gradient(self) -> Tensor:
        """Returns the gradients of all parameters as one vector, negated to maximize."""
        parts = [
            ops.zeros((p.numel(),), dtype=p.dtype, device=p.device)
            if p.grad is None
            else p.grad.detach().reshape(-1)
            for p in self._params()
        ]
        flat = ops.cat(parts)
        return -flat if self.param_groups[0].get("maximize") else flat

    def _move(self, t: float, direction: Tensor) -> None:
        """Adds t * direction to the parameters."""
        start = 0
        for p in self._params():
            n = p.numel()
            p.add_(direction[start : start + n].reshape(p.shape), alpha=t)
            start += n

    def _evaluator(self, evaluate: Callable[[], float], direction: Tensor) -> Evaluate:
        """Returns a function that evaluates a step size in a direction and restores the
        parameters."""
        begin = [p.detach().clone() for p in self._params()]

        def at(t: float) -> tuple[float, Tensor]:
            self._move(t, direction)
            loss, gradient = evaluate(), self._gradient()
            for p, old in zip(self._params(), begin):
                p.copy_(old)
            return loss, gradient

        return at

    @no_grad
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Runs up to max_iter iterations.

        closure: recomputes the loss and its gradients; called with gradients enabled. step returns
            its first result.
        """
        if len(self.param_groups) != 1:
            raise ValueError(f"LBFGS has one group of parameters, not {len(self.param_groups)}")
        group = self.param_groups[0]
        lr, max_iter = float(group["lr"]), group["max_iter"]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError(f'line_search_fn is {search!r}: must be None or "strong_wolfe"')
        sign = -1.0 if group.get("maximize") else 1.0

        def evaluate() -> float:
            with enable_grad():
                return sign * float(closure())

        state = self.state[self._params()[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with enable_grad():
            first_loss = closure()
        loss, gradient = sign * float(first_loss), self._gradient()
        evaluations = 1
        state["func_evals"] += 1
        if largest(gradient) <= group["tolerance_grad"]:
            return first_loss

        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state["d"], state["H_diag"] = -gradient, 1.0
                state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
                t = min(1.0, ratio(1.0, gradient.abs().sum().item())) * lr
            else:
                self._turn(state, gradient, group["history_size"])
                t = lr
            direction = state["d"]
            state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), loss
            previous = loss
            slope = gradient.dot(direction).item()
            state["t"] = t
            if slope > -group["tolerance_change"]:
                break
            calls = 0
            if search:
                at = self._evaluator(evaluate, direction)
                loss, gradient, t, calls = strong_wolfe(at, t, direction, loss, gradient, slope)
                self._move(t, direction)
            else:
                self._move(t, direction)
                if iteration != max_iter:
                    loss, gradient, calls = evaluate(), self._gradient(), 1
            state["t"] = t
            evaluations += calls
            state["func_evals"] += calls
            if (
                iteration == max_iter
                or evaluations >= group["max_eval"]
                or largest(gradient) <= group["tolerance_grad"]
                or largest(direction) * abs(t) <= group["tolerance_change"]
                or abs(loss - previous) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _turn(self, state: dict[str, Any], gradient: Tensor, history: int) -> None:
        """Adds the last step to the history, and sets the direction to minus the product of the
        estimated inverse Hessian and the gradient."""
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change = gradient - state["prev_flat_grad"]
        step = state["d"] * float(state["t"])
        curvature = change.dot(step).item()
        if curvature > 1e-10:
            if len(changes) == history:
                for items in (changes, steps, inverses):
                    items.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change).item()
        shares: list[Any] = [0.0] * len(changes)
        d = -gradient
        for i in reversed(range(len(changes))):
            shares[i] = steps[i].dot(d).item() * float(inverses[i])
            d.add_(changes[i], alpha=-shares[i])
        d.mul_(float(state["H_diag"]))
        for i in range(len(changes)):
            back = changes[i].dot(d).item() * float(inverses[i])
            d.add_(steps[i], alpha=shares[i] - back)
        # of the length that PyTorch's state has
        state["d"], state["al"] = d, shares + [None] * (history - len(shares))


def largest(x: Tensor) -> float:
    return float(x.abs().max().item())


def ratio(a: float, b: float) -> float:
    """Returns a / b with the rules of tensors: division by 0 gives inf or nan."""
    return a / b if b != 0 else math.copysign(math.inf, b) * a


def cubic_minimum(
    a: tuple[float, float, float],
    b: tuple[float, float, float],
    bounds: Sequence[float] | None = None,
) -> float:
    """Returns the position of the minimum of the cubic through two points, within bounds.

    a, b: (position, value, slope). bounds: by default the two positions.
    """
    (x1, f1, g1), (x2, f2, g2) = a, b
    low, high = bounds if bounds is not None else sorted((x1, x2))
    d1 = g1 + g2 - 3 * ratio(f1 - f2, x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if x1 <= x2:
        place = x2 - (x2 - x1) * ratio(g2 + d2 - d1, g2 - g1 + 2 * d2)
    else:
        place = x1 - (x1 - x2) * ratio(g1 + d2 - d1, g1 - g2 + 2 * d2)
    return min(max(place, low), high)


def strong_wolfe(
    at: Evaluate,
    t: float,
    direction: Tensor,
    loss: float,
    gradient: Tensor,
    slope: float,
    *,
    decrease: float = 1e-4,
    flatness: float = 0.9,
    tolerance: float = 1e-9,
    most: int = 25,
) -> tuple[float, Tensor, float, int]:
    """Searches for a step size that meets the strong Wolfe conditions (Nocedal and Wright,
    algorithms 3.5 and 3.6) in at most `most` rounds.

    loss, gradient, slope: the values at step size 0. t: the first step size to try. Returns the
    loss, the gradient, the step size and the number of evaluations.
    """
    size = largest(direction)

    def probe(t: float) -> tuple[float, float, float, Tensor]:
        """Returns (t, loss, slope, gradient)."""
        f, g = at(t)
        return t, f, g.dot(direction).item(), g

    def too_high(p: Any) -> bool:
        return bool(p[1] > loss + decrease * p[0] * slope)

    def flat(p: Any) -> bool:
        return bool(abs(p[2]) <= -flatness * slope)

    start = (0.0, loss, slope, gradient)
    before, here = start, probe(t)
    calls, rounds, done = 1, 0, False
    while rounds < most:
        if too_high(here) or (rounds > 1 and here[1] >= before[1]):
            bracket = [before, here]
            break
        if flat(here):
            bracket, done = [here], True
            break
        if here[2] >= 0:
            bracket = [before, here]
            break
        bounds = (here[0] + 0.01 * (here[0] - before[0]), here[0] * 10)
        t = cubic_minimum(before[:3], here[:3], bounds)
        before, here = here, probe(t)
        calls, rounds = calls + 1, rounds + 1
    else:
        bracket = [start, here]

    stuck = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and rounds < most:
        left, right = sorted(p[0] for p in bracket)
        if (right - left) * size < tolerance:
            break
        t = cubic_minimum(bracket[0][:3], bracket[1][:3])
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # too near to an end
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        here = probe(t)
        calls, rounds = calls + 1, rounds + 1
        if too_high(here) or here[1] >= bracket[low][1]:
            bracket[high] = here
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if flat(here):
                done = True
            elif here[2] * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = here
    t, loss, _, gradient = bracket[low if len(bracket) > 1 else 0]
    return loss, gradient, t, calls
