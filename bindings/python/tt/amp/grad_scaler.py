"""GradScaler: scales the loss so that small gradients do not underflow in float16."""
from __future__ import annotations

import math
import struct
import warnings
from ctypes import byref, c_double, c_int32
from weakref import WeakKeyDictionary

from .. import _convert as convert
from .. import _ops as ops
from .._lib import call
from .._tensor import Tensor
from .._types import float32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["GradScaler", "OptState"]


class OptState:
    """The state of an optimizer since the last update()."""

    READY, UNSCALED, STEPPED = 0, 1, 2


def as_float32(x: float) -> float:
    """Returns x rounded to float32."""
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return math.inf


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
        self._init_scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._scale: Tensor | None = None
        # optimizer -> (state, whether its gradients had inf or nan)
        self._optimizers: WeakKeyDictionary[Any, tuple[int, bool | None]] = WeakKeyDictionary()

    def scale(self, outputs: Any) -> Any:
        """Returns a tensor, or tensors in a list or tuple, multiplied by the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = ops.full((), as_float32(self._init_scale), dtype=float32)
        if isinstance(outputs, Tensor):
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("GradScaler.scale: outputs must be a Tensor or an iterable of Tensors")

    def _known_scale(self, function: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"GradScaler.{function}: there is no scale yet: call scale(loss) before backward"
            )
        return self._scale

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
        factor = as_float32(1.0 / self.get_scale())
        found_inf = c_int32()
        call(
            "tt_unscale_grads_",
            convert.pointers(params),
            convert.length(params),
            c_double(factor),
            byref(found_inf),
        )
        return bool(found_inf.value)

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of the optimizer's parameters by the scale, for example before
        clipping. step() does it if unscale_() was not called."""
        if not self._enabled:
            return
        self._known_scale("unscale_")
        state, _ = self._optimizers.get(optimizer, (OptState.READY, None))
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
        self._known_scale("step")
        state, _ = self._optimizers.get(optimizer, (OptState.READY, None))
        if state == OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state == OptState.READY:
            self.unscale_(optimizer)
        has_inf = self._optimizers[optimizer][1]
        if has_inf is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if has_inf else optimizer.step(*args, **kwargs)
        self._optimizers[optimizer] = OptState.STEPPED, has_inf
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Updates the scale after the steps of an iteration. new_scale: the scale to set."""
        if not self._enabled:
            return
        scale = self._known_scale("update")
        if new_scale is not None:
            value = new_scale.item() if isinstance(new_scale, Tensor) else new_scale
            scale.fill_(float(value))
        else:
            infs = [inf for _, inf in self._optimizers.values() if inf is not None]
            if not infs:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._next_scale(scale, any(infs))
        self._optimizers = WeakKeyDictionary()

    def _next_scale(self, scale: Tensor, found_inf: bool) -> None:
        current = scale.item()
        if found_inf:
            scale.fill_(as_float32(current * self._backoff_factor))
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            grown = as_float32(current * self._growth_factor)
            if math.isfinite(grown):
                scale.fill_(grown)
            self._growth_tracker = 0

    def get_scale(self) -> float:
        """Returns the scale; 1.0 if scaling is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """Returns the factor by which the scale grows after growth_interval steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale grows after growth_interval steps."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Returns the factor of the scale after a step with inf or nan."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor of the scale after a step with inf or nan."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Returns the number of steps without inf or nan after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of steps without inf or nan after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Returns whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Returns the scale, its factors and interval, and the number of steps since it changed."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
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
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self) -> dict[str, Any]:
        if self._optimizers:
            raise RuntimeError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at "
                "the end after scaler.update()."
            )
        state = dict(self.__dict__)
        state["_init_scale"], state["_scale"] = self.get_scale(), None
        del state["_optimizers"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._optimizers = WeakKeyDictionary()
