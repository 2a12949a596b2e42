"""Lazy modules infer the sizes of their parameters from the first input."""
from __future__ import annotations

from typing import Any, ClassVar, Literal, Sequence

from .. import _ops as ops
from .._hints import Self
from .._tensor import Tensor
from .._types import int64
from .._types import device as Device
from .._types import dtype as DType
from ..autograd import no_grad
from ..errors import ShapeError
from . import _layers, conv
from .layer import Layer, preserve_rng_state
from .module import Module
from .parameter import Parameter

PaddingMode = Literal["zeros", "reflect", "replicate", "circular"]

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "UninitializedBuffer",
    "UninitializedParameter",
]


class Uninitialized(Tensor, plain_results=True):
    """The base of parameters and buffers without values, whose shape is not known yet."""

    cls_to_become: ClassVar[type]

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized module. Call `forward` to initialize the parameters before accessing "
            "their attributes."
        )

    def numel(self) -> int:
        raise ValueError(
            "Attempted to count the elements of an uninitialized parameter or buffer. Call "
            "`forward` once before it is used"
        )

    nelement = numel

    def materialize(
        self, shape: Any, device: Device | str | None = None, dtype: DType | None = None
    ) -> None:
        """Converts self to a regular parameter or buffer of this shape, with undefined values."""
        values = ops.empty(
            shape,
            dtype=self.dtype if dtype is None else dtype,
            device=self.device if device is None else device,
        )
        self.assume(values)

    def assume(self, values: Tensor) -> None:
        """Converts self to a regular parameter or buffer with these values."""
        with no_grad():
            self.data = values.detach()
        self.__class__ = self.cls_to_become

    def share_memory_(self) -> Self:
        raise RuntimeError(
            "Can't share the memory of an uninitialized parameter or buffer. Call `forward` before "
            "`share_memory`"
        )

    def detach(self) -> Self:
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        return super().to(*args, **kwargs).as_subclass(type(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        clone: Any = type(self).__new__(type(self), *self.__reduce_ex__(4)[1])
        memo[id(self)] = clone
        return clone

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype)


class UninitializedParameter(Uninitialized, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet."""

    cls_to_become = Parameter

    def __new__(
        cls,
        requires_grad: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> Self:
        empty = ops.empty(0, device=device, dtype=dtype)
        return empty.as_subclass(cls).requires_grad_(requires_grad)

    def __init__(self, *_: object, **__: object) -> None:
        pass


class UninitializedBuffer(Uninitialized):
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
        persistent: bool = True,
    ) -> Self:
        buffer = ops.empty(0, device=device, dtype=dtype).as_subclass(cls)
        return buffer.requires_grad_(requires_grad)

    def __init__(self, *_: object, **__: object) -> None:
        pass


class LazyModuleMixin(Module):
    """A base of modules with UninitializedParameters. A subclass defines initialize_parameters.

    The first call passes the arguments of forward to initialize_parameters. The module's class then
    becomes cls_to_become, if there is one.
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._await_input()

    def _await_input(self) -> None:
        hook = LazyModuleMixin._infer_parameters
        self.__dict__["_lazy_hooks"] = [self.register_forward_pre_hook(hook, with_kwargs=True)]

    def has_uninitialized_params(self) -> bool:
        """Returns whether any parameter or buffer of the module has no shape yet."""
        tensors = (*self._parameters.values(), *self._buffers.values())
        return any(isinstance(t, Uninitialized) for t in tensors)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materializes the parameters for the arguments of forward."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def _infer_parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Initializes the module before its first forward."""
        self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise RuntimeError(
                f"module {self._get_name()} has not been fully initialized by its "
                "initialize_parameters"
            )
        self._end_waiting()

    def _end_waiting(self) -> None:
        for handle in self.__dict__.pop("_lazy_hooks"):
            handle.remove()
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become  # type: ignore[assignment]


# ---- layers ----


class LazyLayer(LazyModuleMixin, Layer):
    """A layer that creates its C module when the argument `_missing` is known."""

    _missing: ClassVar[str]
    _values: dict[str, Any]  # arguments of the constructor

    def _initialize(self, **values: Any) -> None:
        Module.__init__(self)
        values = {name: default[0] for name, _, default, _ in self._arguments if default} | values
        values[self._missing] = 0
        shown = self._as_attributes(values)
        self.__dict__["_values"] = values
        place = {"device": values.pop("device"), "dtype": values.pop("dtype")}
        for name, is_buffer in zip(self._slots, self._buffer_flags):
            if is_buffer:
                self._buffers[name] = self._lazy_buffer(name, **place)
            else:
                self._parameters[name] = self._lazy_parameter(name, **place)
        for name, value in shown.items():
            if name not in (*self._slots, "device", "dtype"):
                self.__dict__[name] = value
        self._await_input()

    def _await_input(self) -> None:
        super()._await_input()
        hook = self.register_load_state_dict_pre_hook(LazyLayer._infer_from_state)
        self.__dict__["_lazy_hooks"].append(hook)

    def _wait_again(self, attributes: dict[str, Any]) -> None:
        """Restores a layer, which had these attributes, after a call with other tensors."""
        self.__dict__.clear()
        self.__dict__.update(attributes)
        self._await_input()

    def _lazy_parameter(self, name: str, **place: Any) -> Parameter | None:
        is_there = self._values.get("affine", True) and (
            name != "bias" or self._values.get("bias", True)
        )
        return UninitializedParameter(**place) if is_there else None

    def _lazy_buffer(self, name: str, **place: Any) -> Tensor | None:
        if not self._values.get("track_running_stats", True):
            return None
        if name == "num_batches_tracked":
            return ops.zeros((), dtype=int64, device=place["device"])
        return UninitializedBuffer(**place)

    def _size_of(self, input: Tensor) -> int:
        """Returns the missing argument for an input."""
        return input.shape[1]

    def _size_in(self, name: str, t: Tensor) -> int:
        """Returns the missing argument for a parameter or buffer of a state dict."""
        return t.shape[0]

    def initialize_parameters(self, input: Tensor) -> None:
        if "_values" not in self.__dict__:
            return
        given = self._parameters["weight"]
        if given is None or isinstance(given, Uninitialized):
            self._materialize(self._size_of(input))
        else:  # a program has made the tensors
            with preserve_rng_state():
                self._materialize(self._size_in("weight", given))

    def _infer_from_state(self, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        """Materializes the module before a state dict is loaded."""
        if "_values" not in self.__dict__:
            return
        for name in ("weight", "running_mean"):
            t = state_dict.get(prefix + name)
            if t is not None and not isinstance(t, Uninitialized):
                self._materialize(self._size_in(name, t))
                self._end_waiting()
                return

    def _materialize(self, size: int) -> None:
        """Creates the C module. The parameters remain the same objects."""
        own: list[dict[str, Any]] = [self._parameters, self._buffers]
        groups = [(group, dict(group)) for group in own]
        tensors = [t for _, items in groups for t in items.values() if t is not None]
        values = {"device": None, "dtype": None, **self._values, self._missing: size}
        for t in tensors:
            if t.is_floating_point():
                values.update(device=t.device, dtype=t.dtype)
        self._adopt(self._new_module(values))
        for group, items in groups:
            for name, t in items.items():
                if isinstance(t, Uninitialized):
                    t.assume(group[name])
                group[name] = t
                self._take(name, t)
        self._remember()
        self.__dict__[self._missing] = size
        del self.__dict__["_values"]
        self.training = self.training

    def _forward(self, *inputs: Any) -> Any:
        """Is reached if another copy of the layer, with the same hooks, was called before."""
        self.initialize_parameters(*inputs)
        return super()._forward(*inputs)

    def reset_parameters(self) -> None:
        """Does nothing: there are no values yet."""

    def __copy__(self) -> Self:
        twin = self.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return Module.__deepcopy__(self, memo)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def extra_repr(self) -> str:
        if "_values" not in self.__dict__:
            return super().extra_repr()
        size = self._values.get("groups", 1)
        kind: Any = self.cls_to_become
        twin = object.__new__(kind)
        Module.__init__(twin)
        twin.__dict__.update(self.__dict__, _parameters={}, _buffers={})
        with preserve_rng_state():
            known = {"dtype": None, **self._values, self._missing: size, "device": "meta"}
            twin._adopt(twin._new_module(known))
        text: str = twin.extra_repr()
        return text.replace(str(size), "0", 1)  # the missing size comes first


class LazyLinear(LazyLayer, _layers.Linear):
    """Linear; in_features is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    _missing = "in_features"
    cls_to_become = _layers.Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        self._initialize(out_features=out_features, bias=bias, device=device, dtype=dtype)

    def _size_of(self, input: Tensor) -> int:
        return input.shape[-1]

    def _size_in(self, name: str, t: Tensor) -> int:
        return t.shape[1]


def channels_of(input: Tensor, dims: int, name: str) -> int:
    """Returns the number of channels of an input with this many spatial dimensions."""
    if input.ndim not in (dims + 1, dims + 2):
        raise ShapeError(
            f"{name}: input is {list(input.shape)}: must have {dims + 1} or {dims + 2} dimensions"
        )
    return input.shape[-1 - dims]


class LazyConv(LazyLayer):
    """The base of lazy convolutions."""

    _missing = "in_channels"
    _dims: ClassVar[int]  # spatial dimensions

    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        self._initialize(
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            device=device,
            dtype=dtype,
        )

    def _size_of(self, input: Tensor) -> int:
        return channels_of(input, self._dims, type(self).__name__)

    def _size_in(self, name: str, t: Tensor) -> int:
        return t.shape[1] * self.groups


class LazyConv1d(LazyConv, _layers.Conv1d):
    """Conv1d; in_channels is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.Conv1d
    _dims = 1


class LazyConv2d(LazyConv, _layers.Conv2d):
    """Conv2d; in_channels is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.Conv2d
    _dims = 2


class LazyConv3d(LazyConv, _layers.Conv3d):
    """Conv3d; in_channels is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.Conv3d
    _dims = 3


class LazyConvTranspose(LazyLayer):
    """The base of lazy transposed convolutions."""

    _missing = "in_channels"
    _dims: ClassVar[int]  # spatial dimensions

    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: PaddingMode = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        self._initialize(
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=bias,
            dilation=dilation,
            padding_mode=padding_mode,
            device=device,
            dtype=dtype,
        )

    def initialize_parameters(self, input: Tensor, output_size: Any = None) -> None:
        super().initialize_parameters(input)

    def _size_of(self, input: Tensor) -> int:
        return channels_of(input, self._dims, type(self).__name__)


class LazyConvTranspose1d(LazyConvTranspose, conv.ConvTranspose1d):
    """ConvTranspose1d; in_channels is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = conv.ConvTranspose1d
    _dims = 1


class LazyConvTranspose2d(LazyConvTranspose, conv.ConvTranspose2d):
    """ConvTranspose2d; in_channels is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = conv.ConvTranspose2d
    _dims = 2


class LazyConvTranspose3d(LazyConvTranspose, conv.ConvTranspose3d):
    """ConvTranspose3d; in_channels is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = conv.ConvTranspose3d
    _dims = 3


class LazyNorm(LazyLayer):
    """The base of lazy normalisations."""

    _missing = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        self._initialize(
            eps=eps,
            momentum=momentum,
            affine=affine,
            track_running_stats=track_running_stats,
            device=device,
            dtype=dtype,
            bias=bias,
        )


class LazyBatchNorm1d(LazyNorm, _layers.BatchNorm1d):
    """BatchNorm1d; num_features is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.BatchNorm1d


class LazyBatchNorm2d(LazyNorm, _layers.BatchNorm2d):
    """BatchNorm2d; num_features is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.BatchNorm2d


class LazyBatchNorm3d(LazyNorm, _layers.BatchNorm3d):
    """BatchNorm3d; num_features is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.BatchNorm3d


class LazyInstanceNorm(LazyNorm):
    """The base of lazy instance normalisations: the batch dimension is optional."""

    _dims: ClassVar[int]  # spatial dimensions

    def _size_of(self, input: Tensor) -> int:
        return channels_of(input, self._dims, type(self).__name__)


class LazyInstanceNorm1d(LazyInstanceNorm, _layers.InstanceNorm1d):
    """InstanceNorm1d; num_features is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.InstanceNorm1d
    _dims = 1


class LazyInstanceNorm2d(LazyInstanceNorm, _layers.InstanceNorm2d):
    """InstanceNorm2d; num_features is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.InstanceNorm2d
    _dims = 2


class LazyInstanceNorm3d(LazyInstanceNorm, _layers.InstanceNorm3d):
    """InstanceNorm3d; num_features is inferred from the first input or a loaded state dict."""

    __module__ = "tt.nn"
    cls_to_become = _layers.InstanceNorm3d
    _dims = 3
