"""assert_close and make_tensor, as in torch.testing."""
from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from . import _ops as ops
from ._create import as_tensor, is_array
from ._layout import strided
from ._limits import finfo
from ._promotion import promote_types
from ._tensor import Tensor
from ._types import BY_NAME
from ._types import device as Device
from ._types import dtype as DType
from .sparse import SparseTensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
# dtype -> (rtol, atol); all others are compared exactly
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
# those of assert_allclose
FORMER_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


class Options:
    """The options of assert_close."""

    def __init__(
        self,
        rtol: float | None,
        atol: float | None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_stride: bool = False,
        check_layout: bool = True,
    ) -> None:
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_stride, self.check_layout = check_stride, check_layout

    def check_tolerances(self) -> None:
        """Raises ValueError if one tolerance is given without the other."""
        if (self.rtol is None) != (self.atol is None):
            lacking = "rtol" if self.rtol is None else "atol"
            raise ValueError(
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {lacking}."
            )

    def tolerances(self, a: Tensor, b: Tensor) -> tuple[float, float]:
        """Returns (rtol, atol) for two tensors: the larger ones of their dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        both = [TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (a, b)]
        return max(r for r, _ in both), max(t for _, t in both)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere.

    actual, expected: tensors, numbers, arrays, or sequences and mappings of these.
    rtol, atol: give both or neither; by default those of the dtype, 0 for integers and bool.
    equal_nan: nan equals nan. msg: replaces the message, or makes it from tt's.
    """
    options = Options(rtol, atol, equal_nan, check_device, check_dtype, check_stride, check_layout)
    mismatch = difference(actual, expected, options, allow_subclasses)
    if mismatch is None:
        return
    message, place = mismatch
    if place:
        message += f"\n\nThe failure occurred for item {place}"
    if msg is not None:
        message = msg(message) if callable(msg) else msg
    raise AssertionError(message)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Calls assert_close without checks of dtype and device. Deprecated."""
    actual, expected = as_tensor(actual), as_tensor(expected)
    if rtol is None and atol is None:
        both = [FORMER_TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (actual, expected)]
        rtol = max(r for r, _ in both)
        atol = max(t for _, t in both)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Device | str | None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Returns a tensor of random values, at least low and below high, for tests.

    low, high: by default -9 and 9; 0 and 9 for uint8, 0 and 2 for bool.
    noncontiguous: leaves gaps in memory. exclude_zero: replaces 0 by the smallest positive number.
    """
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    least, most = {"uint8": (0, 9), "bool": (0, 2)}.get(dtype.name, (-9, 9))
    start, end = least if low is None else low, most if high is None else high
    if start > end or start == end and dtype.kind in "ib":
        raise ValueError(f"make_tensor: low is {start}, high is {end}: low must be below high")
    if requires_grad and dtype.kind in "ib":
        raise ValueError(
            f"make_tensor: dtype is {dtype}: requires_grad must be False for integers and bool"
        )
    wide = (*size[:-1], 2 * size[-1]) if noncontiguous and size else size
    if dtype.kind in "ib":
        result = ops.randint(int(start), max(int(end), int(start) + 1), wide, device=device)
    else:
        real = BY_NAME["float64" if dtype.name in ("float64", "complex128") else "float32"]
        parts = ops.rand((2, *wide), dtype=real, device=device) * (end - start) + start
        result = ops.complex(parts[0], parts[1]) if dtype.is_complex else parts[0]
    result = result.to(dtype)
    if noncontiguous and size:
        result = result[..., ::2]
    if exclude_zero:
        result[result == 0] = 1 if dtype.kind in "ib" else float(finfo(dtype).tiny)
    if memory_format is not None:
        result = result.contiguous(memory_format=memory_format)
    return result.requires_grad_(requires_grad)


def difference(
    a: Any, b: Any, options: Options, allow_subclasses: bool = True
) -> tuple[str, str] | None:
    """Returns (a description of the difference, the item's path), or None."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        missing, more = sorted(set(b) - set(a)), sorted(set(a) - set(b))
        if missing or more:
            text = "The keys of the mappings do not match:"
            text += f"\nMissing keys in the actual mapping: {missing}" if missing else ""
            text += f"\nAdditional keys in the actual mapping: {more}" if more else ""
            return text, ""
        return first_difference([(key, a[key], b[key]) for key in a], options, allow_subclasses)
    if is_sequence(a) and is_sequence(b):
        if len(a) != len(b):
            return f"The length of the sequences mismatch: {len(a)} != {len(b)}", ""
        items = [(i, x, y) for i, (x, y) in enumerate(zip(a, b))]
        return first_difference(items, options, allow_subclasses)
    if a is None or b is None:
        return None if a is b else (f"None mismatch: {a} is not {b}", "")
    if type(a) is bool and type(b) is bool:
        return None if a is b else (f"Booleans mismatch: {a} is not {b}", "")
    are_numbers = is_plain_number(a) and is_plain_number(b)
    if not are_numbers and not are_comparable(a, b, allow_subclasses):
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}."
        )
    options.check_tolerances()
    if are_numbers and options.check_dtype and type(a) is not type(b):
        return f"The (d)types do not match: {type(a)} != {type(b)}.", ""
    if isinstance(a, SparseTensor) or isinstance(b, SparseTensor):
        found = sparse_difference(a, b, options)
        return None if found is None else (found, "")
    if are_numbers:
        wide = BY_NAME["complex128" if complex in (type(a), type(b)) else "float64"]
        if not isinstance(a, float) and not isinstance(b, float) and wide.name == "float64":
            wide = BY_NAME["int64"]
        a, b = as_tensor(a, dtype=wide), as_tensor(b, dtype=wide)
    message = tensor_difference(as_tensor(a), as_tensor(b), options)
    return None if message is None else (message, "")


def first_difference(
    items: Any, options: Options, allow_subclasses: bool
) -> tuple[str, str] | None:
    """Returns the first difference of items (key, actual, expected)."""
    for key, x, y in items:
        mismatch = difference(x, y, options, allow_subclasses)
        if mismatch is not None:
            return mismatch[0], f"[{key!r}]{mismatch[1]}"
    return None


def is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes))


def is_plain_number(x: Any) -> bool:
    return isinstance(x, numbers.Number)


def are_comparable(a: Any, b: Any, allow_subclasses: bool) -> bool:
    """Returns whether both are tensors or both are arrays."""
    kinds = (Tensor, SparseTensor)
    if isinstance(a, kinds) and isinstance(b, kinds):
        return allow_subclasses or type(a) is type(b)
    if isinstance(a, kinds) or isinstance(b, kinds):
        return False
    same = type(a) is type(b) or allow_subclasses and isinstance(a, type(b))
    return same and is_array(a) and is_array(b)


def fact_difference(a: Any, b: Any, options: Options) -> str | None:
    """Describes the first attribute in which two tensors differ."""
    facts: list[tuple[str, Any, Any]] = [("shape", a.shape, b.shape)]
    if options.check_layout:
        facts.append(("layout", a.layout, b.layout))
    if options.check_stride and a.layout is b.layout is strided:
        facts.append(("stride()", a.stride(), b.stride()))
    if options.check_device:
        facts.append(("device", a.device, b.device))
    if options.check_dtype:
        facts.append(("dtype", a.dtype, b.dtype))
    for name, x, y in facts:
        if x != y:
            return f"The values for attribute '{name}' do not match: {x} != {y}."
    return None


def sparse_difference(a: Any, b: Any, options: Options) -> str | None:
    """Describes how two tensors differ of which one is sparse: the first of their parts that do."""
    text = fact_difference(a, b, options)
    if text is not None:
        return text
    if a.layout != b.layout:
        return tensor_difference(a.to_dense(), b.to_dense(), options)
    layout = str(a.layout).rpartition("_")[2].upper()
    if a._nnz() != b._nnz():
        return (
            f"The number of specified values in sparse {layout} tensors does not match: "
            f"{a._nnz()} != {b._nnz()}"
        )
    others = b._shown_parts()
    exact = Options(rtol=0, atol=0)
    for name, part in a._shown_parts().items():
        limits = options if name == "values" else exact
        text = tensor_difference(part, others[name], limits, f"Sparse {layout} {name}")
        if text is not None:
            return text
    return None


def tensor_difference(
    a: Tensor, b: Tensor, options: Options, identifier: str | None = None
) -> str | None:
    """Describes how two tensors differ; None if they do not. identifier: what they are."""
    text = fact_difference(a, b, options)
    if text is not None:
        return text
    rtol, atol = options.tolerances(a, b)
    common = promote_types(a.dtype, b.dtype)
    if common.kind == "b":
        common = BY_NAME["uint8"]
    a, b = a.detach().cpu().to(common), b.detach().cpu().to(common)
    equal = a == b
    if options.equal_nan:
        equal = equal | ((a != a) & (b != b))
    if bool(equal.all()):
        return None
    if common.kind == "i":
        a, b = a.long(), b.long()
    error, size = (a - b).abs(), b.abs()
    infinite = (error == float("inf")) | (error != error)
    close = equal
    if rtol or atol:
        close = equal | (~infinite & (error <= atol + rtol * size))
    if bool(close.all()):
        return None
    return described(a, b, close, rtol, atol, identifier)


def described(
    a: Tensor, b: Tensor, close: Tensor, rtol: float, atol: float, identifier: str | None
) -> str:
    """Returns the message for the elements that are not close."""
    error, size = (a - b).abs(), b.abs()
    error = error.masked_fill(close, 0)
    relative = (error / size).masked_fill(close, 0)
    exact = rtol == atol == 0
    what = "equal" if exact else "close"
    limits = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    if not error.ndim:
        return (
            f"{identifier or 'Scalars'} are not {what}!\n\n"
            f"Expected {b.item()} but got {a.item()}.\n"
            f"Absolute difference: {error.item()}{limits[0]}\n"
            f"Relative difference: {relative.item()}{limits[1]}"
        )
    n, total = int((~close).sum()), close.numel()
    lines = [
        f"{identifier or 'Tensor-likes'} are not {what}!\n",
        f"Mismatched elements: {n} / {total}",
    ]
    lines[-1] += f" ({n / total:.1%})"
    for name, values, limit in (("absolute", error, limits[0]), ("relative", relative, limits[1])):
        flat = values.reshape(-1)
        at = int(flat.argmax())
        place: list[int] = []
        for length in reversed(values.shape):
            at, i = divmod(at, length)
            place.insert(0, i)
        largest = flat.max().item()
        lines.append(f"Greatest {name} difference: {largest} at index {tuple(place)}{limit}")
    return "\n".join(lines)


def __dir__() -> list[str]:
    return __all__
