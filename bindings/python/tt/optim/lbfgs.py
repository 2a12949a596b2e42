"""LBFGS: the limited-memory BFGS method. A step calls the closure from C."""
from __future__ import annotations

from ctypes import byref, c_void_p
from typing import Any, Callable

from . import _optimizers
from .._callbacks import tt_optim_closure
from .._create import tensor
from .._lib import drop, fail, keep, lib, local, quick
from .._tensor import Tensor
from .._types import float64
from .optimizer import refuse_sparse_grads

# names in the state: integers, lists
COUNTS = ("func_evals", "n_iter")
LISTS = ("old_dirs", "old_stps", "ro")


class LBFGS(_optimizers.LBFGS):
    __doc__ = _optimizers.LBFGS.__doc__
    __module__ = "tt.optim"

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Runs up to max_iter iterations. Returns the closure's first result.

        closure: recomputes the loss and its gradients; called several times, with gradients
            enabled. It returns a tensor of one element or a number.

        If the closure raises, parameters and state are as before the step.
        """
        results: list[Any] = []
        self._settle()

        def evaluate() -> Tensor:
            loss = closure()
            refuse_sparse_grads("LBFGS", self._params())
            if not results:
                results.append(loss)
            return as_tensor(loss)

        loss = c_void_p()
        given = tt_optim_closure, c_void_p(keep(evaluate)), drop
        if lib.tt_optim_step_closure(local.ctx, self._handle, *given, byref(loss)):
            fail()
        quick.tt_tensor_release(loss)
        return results[0]

    # ---- state: that of the first parameter, with PyTorch's names ----

    def _states(self) -> dict[int, dict[str, Any]]:
        state: dict[str, Any] = {}
        for name, value in super()._states().get(0, {}).items():
            head, _, index = name.partition(".")
            if index:  # of a list: "ro.3"
                state.setdefault(head, []).append(value)
            else:
                state[head] = value
        if not state:
            return {}
        if state["n_iter"] == 0:  # the first gradient was small enough
            return {0: {name: state[name] for name in COUNTS}}
        return {0: {**{name: [] for name in LISTS}, **state}}

    def _number(self, position: int, key: str, value: float) -> Any:
        return int(value) if key in COUNTS else value

    def _state(self, position: int, key: str) -> Any:
        return self._states().get(position, {}).get(key)

    def _set_state(self, position: int, key: str, value: Any) -> None:
        if key == "al":  # in PyTorch's states only: each step computes it anew
            return
        if key not in LISTS:
            super()._set_state(position, key, value if value is None else as_tensor(value))
            return
        super()._set_state(position, f"{key}.0", None)  # clears the list
        for i, item in enumerate(value or ()):
            super()._set_state(position, f"{key}.{i}", as_tensor(item))


def as_tensor(value: Any) -> Tensor:
    """Returns a tensor, of float64 for a number."""
    return value if isinstance(value, Tensor) else tensor(value, dtype=float64)
