"""Quantised tensors: integers that stand for numbers, with scales and zero points.

A QuantizedTensor is no tt.Tensor, but a Python object over a tensor of integers. Functions that
move elements keep scale and zero point; dequantize() gives a tensor that every function takes.
"""
from __future__ import annotations

from typing import Any, Callable, NoReturn

from ._ops import _quant
from ._absent import ABSENT_DTYPES
from ._convert import instance
from ._class_name import class_name
from ._layout import layout as Layout
from ._layout import per_channel_affine, per_tensor_affine, strided
from ._layout import qscheme as Scheme
from ._tensor import Tensor
from ._types import BY_NAME, Size
from ._types import device as Device
from ._types import dtype as DType
from .errors import DtypeError, InvalidArgumentError, ShapeError

# quantised dtype -> the dtype of its integers, the smallest and the largest one
INTEGERS = {
    ABSENT_DTYPES["qint8"]: (BY_NAME["int8"], -128, 127),
    ABSENT_DTYPES["quint8"]: (BY_NAME["uint8"], 0, 255),
    ABSENT_DTYPES["qint32"]: (BY_NAME["int32"], -(2**31), 2**31 - 1),
}
# of quantize_per_tensor_dynamic: PyTorch's 6.1e-5, which is a float32
SMALLEST_SCALE = 6.0999998822808266e-05
# of tensors with one scale
MOVES = (
    "__getitem__ expand flatten movedim narrow permute reshape select squeeze t transpose "
    "unflatten unsqueeze view"
).split()
COPIES = "clone contiguous cpu detach".split()
COMPARISONS = "__eq__ __ne__ __lt__ __le__ __gt__ __ge__".split()


class QuantizedTensor:
    """(integer - zero_point) * scale, with one scale and zero point, or one along a dimension."""

    __hash__ = object.__hash__
    is_quantized = True
    is_sparse = False
    requires_grad = False
    grad = None

    def __init__(self, integers: Tensor, dtype: DType, scale: Any, zero: Any, axis: Any) -> None:
        self._integers, self.dtype = integers, dtype
        self._scale, self._zero, self._axis = scale, zero, axis

    # ---- facts ----

    @property
    def shape(self) -> Size:
        return self._integers.shape

    @property
    def device(self) -> Device:
        return self._integers.device

    @property
    def layout(self) -> Layout:
        return strided

    @property
    def ndim(self) -> int:
        return self._integers.ndim

    def dim(self) -> int:
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        return self._integers.stride() if dim is None else self._integers.stride(dim)

    def numel(self) -> int:
        return self._integers.numel()

    def is_contiguous(self) -> bool:
        return self._integers.is_contiguous()

    def is_floating_point(self) -> bool:
        return False

    def __len__(self) -> int:
        return len(self._integers)

    def qscheme(self) -> Scheme:
        """Returns per_tensor_affine or per_channel_affine."""
        return per_tensor_affine if self._axis is None else per_channel_affine

    def _of(self, scheme: Scheme, name: str) -> None:
        if self.qscheme() is not scheme:
            raise InvalidArgumentError(
                f"{name}: self is {self.qscheme().name}: must be {scheme.name}"
            )

    def q_scale(self) -> float:
        """Returns the scale of a tensor that has one."""
        self._of(per_tensor_affine, "q_scale")
        return self._scale

    def q_zero_point(self) -> int:
        """Returns the zero point of a tensor that has one."""
        self._of(per_tensor_affine, "q_zero_point")
        return self._zero

    def q_per_channel_scales(self) -> Tensor:
        """Returns the scales along an axis."""
        self._of(per_channel_affine, "q_per_channel_scales")
        return self._scale

    def q_per_channel_zero_points(self) -> Tensor:
        """Returns the zero points along an axis."""
        self._of(per_channel_affine, "q_per_channel_zero_points")
        return self._zero

    def q_per_channel_axis(self) -> int:
        """Returns the dimension that has a scale at each position."""
        self._of(per_channel_affine, "q_per_channel_axis")
        return self._axis

    # ---- values ----

    def int_repr(self) -> Tensor:
        """Returns a copy of the integers."""
        return self._integers.clone()

    def dequantize(self) -> Tensor:
        """Returns the numbers as a float32 tensor."""
        integer, least, greatest = INTEGERS[self.dtype]
        if self._axis is None:
            return _quant.dequantize_per_tensor(
                self._integers, self._scale, self._zero, least, greatest, integer
            )
        return _quant.dequantize_per_channel(
            self._integers,
            self._scale.to(BY_NAME["float32"]),
            self._zero,
            self._axis,
            least,
            greatest,
            integer,
        )

    def __bool__(self) -> bool:
        return bool(self.dequantize())

    def item(self) -> float:
        return self.dequantize().item()

    def tolist(self) -> Any:
        return self.dequantize().tolist()

    def relu(self) -> QuantizedTensor:
        """Returns the larger one of each number and 0."""
        self._of(per_tensor_affine, "relu")
        return self._with(self._integers.clamp(min=self._zero))

    def equal(self, other: Any) -> bool:
        """Returns whether both have the same shape, dtype, scales, zero points and integers."""
        if not isinstance(other, QuantizedTensor) or self.qscheme() is not other.qscheme():
            return False
        if self._axis != other._axis or self.dtype is not other.dtype:
            return False
        pairs = ((self._scale, other._scale), (self._zero, other._zero))
        if not all(a.equal(b) if isinstance(a, Tensor) else a == b for a, b in pairs):
            return False
        return self._integers.equal(other._integers)

    def copy_(self, src: Any) -> QuantizedTensor:
        """Quantises src by the scales of self, in place. Returns self."""
        numbers = src.dequantize() if isinstance(src, QuantizedTensor) else src
        if instance(Tensor, numbers, "copy_", "src").shape != self.shape:
            raise ShapeError(
                f"copy_: src is {list(numbers.shape)}, self {list(self.shape)}: must be equal"
            )
        self._integers.copy_(rounded(numbers, self.dtype, self._scale, self._zero, self._axis))
        return self

    def _with(self, integers: Tensor) -> QuantizedTensor:
        return QuantizedTensor(integers, self.dtype, self._scale, self._zero, self._axis)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"'QuantizedTensor' object has no attribute '{name}': dequantize() gives a Tensor"
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func))
        if name in ("cat", "stack"):
            return joined(func, *args, **(kwargs or {}))
        first = args[0] if args else None
        if name in ("relu", "equal", *MOVES, *COPIES) and isinstance(first, QuantizedTensor):
            return getattr(first, name)(*args[1:], **(kwargs or {}))
        raise TypeError(f"{name}: not a function of quantised tensors: use dequantize()")

    def __repr__(self) -> str:
        facts = [f"size={tuple(self.shape)}", f"dtype={self.dtype}"]
        facts.append(f"quantization_scheme={self.qscheme()}")
        facts += [f"scale={self._scale}", f"zero_point={self._zero}"]
        if self._axis is not None:
            facts.append(f"axis={self._axis}")
        shown = repr(self.dequantize())[:-1]
        for fact in facts:
            width = len(shown) - shown.rfind("\n") - 1
            line = width + len(fact.partition("\n")[0]) + 3
            shown += f",\n       {fact}" if line > 80 else f", {fact}"
        return shown + ")"


def moved(name: str) -> Callable[..., QuantizedTensor]:
    """Returns a method that moves elements."""
    function = getattr(Tensor, name)

    def method(self: QuantizedTensor, *args: Any, **kwargs: Any) -> QuantizedTensor:
        self._of(per_tensor_affine, name)
        return self._with(function(self._integers, *args, **kwargs))

    method.__name__ = name
    return method


def copied(name: str) -> Callable[..., QuantizedTensor]:
    """Returns a method that keeps every element at its place."""
    function = getattr(Tensor, name)

    def method(self: QuantizedTensor, *args: Any, **kwargs: Any) -> QuantizedTensor:
        return self._with(function(self._integers, *args, **kwargs))

    method.__name__ = name
    return method


def compared(name: str) -> Callable[..., Any]:
    """Returns a comparison of the numbers."""
    function = getattr(Tensor, name)

    def method(self: QuantizedTensor, other: Any) -> Any:
        numbers = other.dequantize() if isinstance(other, QuantizedTensor) else other
        return function(self.dequantize(), numbers)

    method.__name__ = name
    return method


for _names, _make in ((MOVES, moved), (COPIES, copied), (COMPARISONS, compared)):
    for _name in _names:
        setattr(QuantizedTensor, _name, _make(_name))


# ---- functions ----


def joined(func: Any, tensors: Any, *args: Any, **kwargs: Any) -> QuantizedTensor:
    """Joins tensors of one scale; they get the scale of the first one."""
    first, *others = tensors
    numbers = [x.dequantize() for x in others]
    parts = [rounded(x, first.dtype, first.q_scale(), first.q_zero_point(), None) for x in numbers]
    return first._with(func([first._integers, *parts], *args, **kwargs))


def rounded(x: Tensor, dtype: DType, scale: Any, zero: Any, axis: int | None) -> Tensor:
    """Returns the integers that are nearest to x / scale + zero, within those of the dtype."""
    integer, least, greatest = INTEGERS[dtype]
    if axis is None:
        return _quant.quantize_per_tensor(x, scale, zero, least, greatest, integer)
    return _quant.quantize_per_channel(
        x, scale.to(BY_NAME["float32"]), zero, axis, least, greatest, integer
    )


def numbers_of(input: Any, op: str) -> Tensor:
    """Checks what is quantised."""
    x = instance(Tensor, input, op, "input")
    if x.dtype is not BY_NAME["float32"]:
        raise DtypeError(f"{op}: input is {x.dtype}: must be float32")
    return x.detach()


def check_dtype(dtype: Any, op: str) -> None:
    if dtype not in INTEGERS:
        raise DtypeError(f"{op}: dtype is {dtype}: must be qint8, quint8 or qint32")


def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: DType) -> Any:
    """Returns float32 tensors as integers of a quantised dtype: round(input / scale) + zero_point.

    scale, zero_point: numbers or tensors of one element; for a list of tensors one for each.
    dtype: qint8, quint8 or qint32.
    """
    op = "quantize_per_tensor"
    if isinstance(input, (list, tuple)):
        scales, zeros = scale.tolist(), zero_point.tolist()
        if not len(input) == len(scales) == len(zeros):
            raise ShapeError(
                f"{op}: there are {len(input)} tensors, {len(scales)} scales and {len(zeros)} zero "
                "points: must be as many of each"
            )
        return tuple(quantize_per_tensor(x, s, z, dtype) for x, s, z in zip(input, scales, zeros))
    x = numbers_of(input, op)
    check_dtype(dtype, op)
    step, zero = float(scale), int(zero_point)
    _, least, greatest = INTEGERS[dtype]
    if not step > 0:
        raise InvalidArgumentError(f"{op}: scale is {step}: must be positive")
    if not least <= zero <= greatest:
        raise InvalidArgumentError(
            f"{op}: zero_point is {zero}: must be in [{least}, {greatest}], the integers of {dtype}"
        )
    return QuantizedTensor(rounded(x, dtype, step, zero, None), dtype, step, zero, None)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: DType
) -> QuantizedTensor:
    """Returns a float32 tensor as integers of a quantised dtype, with a scale and a zero point for
    each position along a dimension.

    scales, zero_points: (input.shape[axis]). dtype: qint8, quint8 or qint32.
    """
    op = "quantize_per_channel"
    x = numbers_of(input, op)
    check_dtype(dtype, op)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"{op}: axis is {axis}: input has {x.ndim} dimensions")
    axis %= x.ndim
    for name, t in (("scales", scales), ("zero_points", zero_points)):
        if instance(Tensor, t, op, name).shape != (x.shape[axis],):
            raise ShapeError(f"{op}: {name} are {list(t.shape)}: must be [{x.shape[axis]}]")
    steps, zeros = scales.detach().to(BY_NAME["float64"]), zero_points.to(BY_NAME["int64"])
    _, least, greatest = INTEGERS[dtype]
    if any(not least <= zero <= greatest for zero in zeros.tolist()):
        raise InvalidArgumentError(
            f"{op}: zero_points are {zeros.tolist()}: must be in [{least}, {greatest}], the "
            f"integers of {dtype}"
        )
    return QuantizedTensor(rounded(x, dtype, steps, zeros, axis), dtype, steps, zeros, axis)


def quantize_per_tensor_dynamic(input: Tensor, dtype: DType, reduce_range: bool) -> QuantizedTensor:
    """Calls quantize_per_tensor with the scale and the zero point that the smallest and the largest
    element ask for.

    dtype: qint8 or quint8. reduce_range: uses half of the integers.
    """
    op = "quantize_per_tensor_dynamic"
    x = numbers_of(input, op)
    check_dtype(dtype, op)
    if dtype.name == "qint32":
        raise DtypeError(f"{op}: dtype is qint32: must be qint8 or quint8")
    _, least, greatest = INTEGERS[dtype]
    if reduce_range:
        least, greatest = least // 2, greatest // 2
    low, high = (min(float(x.min()), 0.0), max(float(x.max()), 0.0)) if x.numel() else (0.0, 0.0)
    scale = (high - low) / (greatest - least)
    if scale == 0:
        scale = 0.1
    if scale < SMALLEST_SCALE:
        low, high = low * (SMALLEST_SCALE / scale), high * (SMALLEST_SCALE / scale)
        scale = SMALLEST_SCALE
    of_low, of_high = least - low / scale, greatest - high / scale
    low_is_nearer = abs(least) - abs(low / scale) < abs(greatest) - abs(high / scale)
    zero = min(max(round(of_low if low_is_nearer else of_high), least), greatest)
    return quantize_per_tensor(x, scale, zero, dtype)


def dequantize(input: Any = None, *, tensors: Any = None) -> Any:
    """Returns the numbers of quantised tensors, or float32 copies of others; a tuple for a list."""
    given = tensors if input is None else input
    if isinstance(given, (list, tuple)):
        return tuple(dequantize(x) for x in given)
    if isinstance(given, QuantizedTensor):
        return given.dequantize()
    return instance(Tensor, given, "dequantize", "input").to(BY_NAME["float32"])


def fact(name: str) -> Callable[[Any], Any]:
    """Returns a method of quantised tensors as a function."""
    method = getattr(QuantizedTensor, name)

    def call(input: QuantizedTensor) -> Any:
        if not isinstance(input, QuantizedTensor):
            raise TypeError(f"{name}(): input is {class_name(input)}: must be a quantised tensor")
        return method(input)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = method.__doc__
    return call


int_repr = fact("int_repr")
q_scale = fact("q_scale")
q_zero_point = fact("q_zero_point")
q_per_channel_axis = fact("q_per_channel_axis")
q_per_channel_scales = fact("q_per_channel_scales")
q_per_channel_zero_points = fact("q_per_channel_zero_points")
