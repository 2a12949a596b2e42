"""Upsampling layers whose scale_factor may have a number for each dimension."""
from __future__ import annotations

from typing import Any, Literal, Sequence

from . import _layers
from .layer import Layer
from .layer import ModuleHandle

SCALES = ("scale_w", "scale_h", "scale_d")  # C's arguments, from the last dimension


class Resizing(Layer):
    """The base of the upsampling layers."""

    size: Any
    scale_factor: Any
    mode: Any
    _folded = SCALES

    def _new_module(self, values: dict[str, Any]) -> ModuleHandle:
        names = {row[0] for row in self._arguments}
        given = {**dict.fromkeys(names), **values}
        factors = given["scale_factor"]
        if isinstance(factors, (tuple, list)):
            if len(factors) > len(names.intersection(SCALES)):
                raise ValueError(f"{self._class}: scale_factor has {len(factors)} numbers")
            given.update(zip(SCALES, reversed(factors)), scale_factor=None)
        return super()._new_module({name: given[name] for name in names})

    def _as_attributes(self, values: dict[str, Any]) -> dict[str, Any]:
        shown = dict(values)
        factors = shown["scale_factor"]
        if isinstance(factors, (tuple, list)):
            shown["scale_factor"] = tuple(map(float, factors))
        elif factors is not None:
            shown["scale_factor"] = float(factors)
        return shown

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor}, mode={self.mode!r}"
        return f"size={self.size}, mode={self.mode!r}"


class Upsample(Resizing, _layers.Upsample):
    __doc__ = _layers.Upsample.__doc__
    __module__ = "tt.nn"
    _class = "Upsample"

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: Literal[
            "nearest", "linear", "bilinear", "nearest-exact", "area", "bicubic", "trilinear"
        ] = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self._initialize(
            size=size,
            scale_factor=scale_factor,
            mode=mode,
            align_corners=align_corners,
            recompute_scale_factor=recompute_scale_factor,
        )


class UpsamplingNearest2d(Resizing, _layers.UpsamplingNearest2d):
    __doc__ = _layers.UpsamplingNearest2d.__doc__
    __module__ = "tt.nn"
    _class = "UpsamplingNearest2d"
    mode = "nearest"

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        self._initialize(size=size, scale_factor=scale_factor)


class UpsamplingBilinear2d(Resizing, _layers.UpsamplingBilinear2d):
    __doc__ = _layers.UpsamplingBilinear2d.__doc__
    __module__ = "tt.nn"
    _class = "UpsamplingBilinear2d"
    mode = "bilinear"

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        self._initialize(size=size, scale_factor=scale_factor)
