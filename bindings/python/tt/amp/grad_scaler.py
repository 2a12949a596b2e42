"""GradScaler: scales the loss so that small gradients do not underflow in float16."""
from __future__ import annotations

import warnings
from ctypes import c_double
from typing import Any
from weakref import WeakKeyDictionary

from .._handles import GradScalerHandle
from .._lib import call
from .._layout import SparseGrads
from .._tensor import Tensor
from ..compiler import is_compiling, is_exporting
from ..optim.native import NativeOptimizer
from ..optim.optimizer import params_with_sparse_grads

__all__ = ["GradScaler", "OptState"]


class OptState:
    """The state of an optimizer since the last update()."""

    READY, UNSCALED, STEPPED = 0, 1, 2


FIELDS = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")
State = c_double * len(FIELDS)  # of a tt_grad_scaler


class GradScaler:
    """Multiplies losses by a scale and divides the gradients by it before a step.

    A step whose gradients contain inf or nan is skipped, and update() multiplies the scale by
    backoff_factor. After growth_interval steps in a row that were not skipped, update() multiplies
    it by growth_factor.
    enabled=False: losses are not scaled and no step is skipped.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = str(device)
        self._enabled = bool(enabled)
        if self._enabled and self._device.startswith("cuda"):
            from .. import cuda

            if not cuda.is_available():
                warnings.warn(
                    "GradScaler: there is no CUDA device: it is disabled. "
                    "GradScaler('cpu') scales on the CPU",
                    stacklevel=2,
                )
                self._enabled = False
        if growth_factor <= 1.0:
            raise AssertionError(f"GradScaler: growth_factor is {growth_factor}: must be > 1")
        if backoff_factor >= 1.0:
            raise AssertionError(f"GradScaler: backoff_factor is {backoff_factor}: must be < 1")
        self._native = GradScalerHandle(
            init_scale=float(init_scale),
            growth_factor=float(growth_factor),
            backoff_factor=float(backoff_factor),
            growth_interval=int(growth_interval),
        )
        self._init_scale = float(init_scale)
        self._started = False  # a loss has been scaled
        # optimizer -> (state, whether its gradients had inf or nan)
        self._optimizers: WeakKeyDictionary[Any, tuple[int, bool | None]] = WeakKeyDictionary()

    def scale(self, outputs: Any) -> Any:
        """Returns a tensor, or tensors in a list or tuple, multiplied by the scale."""
        if not self._enabled:
            return outputs
        self._started = True
        if isinstance(outputs, Tensor):
            return self._native.scale(outputs)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("GradScaler.scale: outputs must be a Tensor or an iterable of Tensors")

    def _get(self, field: str) -> float:
        """Returns a number of the native state."""
        state = State()
        call("tt_grad_scaler_state", self._native, state)
        return state[FIELDS.index(field)]

    def _set(self, **values: float) -> None:
        """Sets numbers of the native state."""
        state = State()
        call("tt_grad_scaler_state", self._native, state)
        for field, value in values.items():
            state[FIELDS.index(field)] = value
        call("tt_grad_scaler_set_state", self._native, state)

    def _check_started(self, function: str) -> None:
        if not self._started:
            raise AssertionError(
                f"GradScaler.{function}: there is no scale yet: call scale(loss) before backward"
            )

    def _native_handle(self, optimizer: Any) -> Any:
        """Returns the handle of an optimizer that libtt runs; None for others, and where a gradient
        is sparse."""
        if not isinstance(optimizer, NativeOptimizer):
            return None
        if SparseGrads.seen and params_with_sparse_grads(optimizer._params()):
            return None
        optimizer._settle()
        return optimizer._handle

    def _seen(self, optimizer: Any) -> tuple[int, bool | None]:
        """Returns the state of an optimizer and whether its gradients had inf or nan. Replays of
        compiled functions unscale, too, which only the native state shows."""
        if optimizer in self._optimizers:
            return self._optimizers[optimizer]
        handle = self._native_handle(optimizer)
        found = -1 if handle is None else self._native.found_inf(handle)
        if found < 0:
            return OptState.READY, None
        return OptState.UNSCALED, bool(found)

    def _unscaled(self, optimizer: Any, allow_fp16: bool) -> bool | None:
        """Divides the gradients by the scale. Returns whether one contained inf or nan, or None if
        there are no gradients."""
        params = [
            p for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        if not params:
            return None
        if not allow_fp16 and any(p.grad.dtype.name == "float16" for p in params):
            raise ValueError("Attempting to unscale FP16 gradients.")
        handle = None if allow_fp16 else self._native_handle(optimizer)
        if handle is not None:
            self._native.unscale(handle)
            return self._native.found_inf(handle) > 0
        if not SparseGrads.seen:
            return bool(self._native.unscale_list(params))
        from .. import _sparse_grad

        with _sparse_grad.as_dense_leaves(params) as leaves:
            return bool(self._native.unscale_list(leaves))

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of the optimizer's parameters by the scale, for example before
        clipping. step() does it if unscale_() was not called."""
        if not self._enabled:
            return
        self._check_started("unscale_")
        state, _ = self._seen(optimizer)
        if state == OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state == OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        found_inf = self._unscaled(optimizer, False)
        self._optimizers[optimizer] = OptState.UNSCALED, found_inf

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscales the gradients and calls optimizer.step(*args, **kwargs) unless a gradient
        contains inf or nan. Returns the result of the step, or None if it was skipped."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        state, has_inf = self._seen(optimizer)
        if state == OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state == OptState.READY:
            self.unscale_(optimizer)
            has_inf = self._optimizers[optimizer][1]
        if has_inf is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        if (is_compiling() or is_exporting()) and self._native_handle(optimizer) is not None:
            result = self._recorded_step(optimizer, *args, **kwargs)
        else:
            result = None if has_inf else optimizer.step(*args, **kwargs)
        self._optimizers[optimizer] = OptState.STEPPED, has_inf
        return result

    def _recorded_step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls optimizer.step(*args, **kwargs), in which libtt decides, so that replays do."""
        optimizer._scaler = self._native
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer._scaler

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Updates the scale after the steps of an iteration. new_scale: the scale to set."""
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is not None:
            value = new_scale.item() if isinstance(new_scale, Tensor) else new_scale
            self._native.update(1.0)  # forgets what the iteration found
            self._set(scale=float(value))
        else:
            try:
                self._native.update(0.0)
            except ValueError as e:
                raise AssertionError("No inf checks were recorded prior to update.") from e
        self._optimizers = WeakKeyDictionary()

    def get_scale(self) -> float:
        """Returns the scale; 1.0 if scaling is disabled."""
        if not self._enabled:
            return 1.0
        return self._get("scale") if self._started else self._init_scale

    def get_growth_factor(self) -> float:
        """Returns the factor by which the scale grows after growth_interval steps."""
        return self._get("growth_factor")

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale grows after growth_interval steps."""
        self._set(growth_factor=new_factor)

    def get_backoff_factor(self) -> float:
        """Returns the factor of the scale after a step with inf or nan."""
        return self._get("backoff_factor")

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor of the scale after a step with inf or nan."""
        self._set(backoff_factor=new_factor)

    def get_growth_interval(self) -> int:
        """Returns the number of steps without inf or nan after which the scale grows."""
        return int(self._get("growth_interval"))

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of steps without inf or nan after which the scale grows."""
        self._set(growth_interval=new_interval)

    def is_enabled(self) -> bool:
        """Returns whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Returns the scale, its factors and interval, and the number of steps since it changed."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self.get_growth_factor(),
            "backoff_factor": self.get_backoff_factor(),
            "growth_interval": self.get_growth_interval(),
            "_growth_tracker": int(self._get("_growth_tracker")),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that state_dict() returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved "
                "from a disabled instance of GradScaler."
            )
        self._init_scale = float(state_dict["scale"])
        self._set(**{field: state_dict[field] for field in FIELDS})

    def __getstate__(self) -> dict[str, Any]:
        if self._optimizers:
            raise RuntimeError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at "
                "the end after scaler.update()."
            )
        state = dict(self.__dict__)
        state["_init_scale"], state["_started"] = self.get_scale(), False
        state["_native"] = {field: self._get(field) for field in FIELDS}
        del state["_optimizers"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        native = state.pop("_native")
        self.__dict__.update(state)
        self._native = GradScalerHandle()
        self._set(**native)
        self._optimizers = WeakKeyDictionary()
