"""torch.masked's MaskedTensor: a tensor of which only the elements where a mask is True count.

It is no tt.Tensor, but a Python object over two tensors. Elementwise functions keep the mask,
reductions see the elements that it keeps, by the functions of tt.masked.
"""
from __future__ import annotations

from typing import Any, Callable

from . import _ops as ops
from ._layout import layout as Layout
from ._tensor import Tensor
from ._types import BY_NAME, Size
from ._types import device as Device
from ._types import dtype as DType

REDUCTIONS = set("amax amin argmax argmin mean norm prod std sum var".split())
# the arguments of reductions behind the tensor, where they are not dim and keepdim
ARGUMENTS = {
    "norm": ("p", "dim", "keepdim"),
    "std": ("dim", "unbiased", "keepdim"),
    "var": ("dim", "unbiased", "keepdim"),
}
MOVES = set(  # applied to data and mask alike
    "clone contiguous detach expand flatten index_select movedim narrow permute reshape select "
    "squeeze t transpose unflatten unfold unsqueeze view".split()
)
SPLITS = set("chunk split tensor_split unbind".split())
JOINS = set("cat concat concatenate dstack hstack stack vstack".split())
NORMALIZATIONS = {"softmax", "log_softmax", "softmin"}  # functions of tt.masked
UNARY = set(
    "abs absolute acos acosh angle arccos arcsin arctan asin asinh atan atanh ceil conj_physical cos "
    "cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 isnan lgamma log log10 log1p "
    "log2 logit nan_to_num neg negative positive rad2deg reciprocal relu round rsqrt sgn sigmoid "
    "sign signbit sin sinc sinh sqrt square tan tanh trunc to float double half int long bool".split()
)
BINARY = set(
    "add atan2 bitwise_and bitwise_or bitwise_xor div divide eq floor_divide fmax fmin fmod ge gt le "
    "logaddexp lt maximum minimum mul multiply ne pow remainder sub subtract true_divide "
    "radd rmul rsub rtruediv rpow truediv floordiv mod and or xor".split()
)
METHODS = UNARY | BINARY | MOVES | SPLITS | REDUCTIONS | {"all", "any", "where"}
METHODS |= {"softmax", "log_softmax"}
OPERATORS = (
    "add sub mul truediv floordiv mod pow radd rsub rmul rtruediv rpow neg abs eq ne lt le gt ge"
).split()


class MaskedTensor:
    """data where mask is True. The mask has data's shape."""

    __hash__ = object.__hash__

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        if data.shape != mask.shape or mask.dtype is not BY_NAME["bool"]:
            raise ValueError(
                f"masked_tensor: data is {list(data.shape)}, mask {list(mask.shape)} of {mask.dtype}: "
                "mask must be bool and have data's shape"
            )
        self._masked_data = data.detach().clone().requires_grad_(requires_grad)
        self._masked_mask = mask

    @staticmethod
    def _of(data: Tensor, mask: Tensor) -> MaskedTensor:
        """Returns a masked tensor that keeps data's history."""
        made = object.__new__(MaskedTensor)
        made._masked_data, made._masked_mask = data, mask.expand(data.shape)
        return made

    # ---- attributes ----

    @property
    def shape(self) -> Size:
        return self._masked_data.shape

    @property
    def dtype(self) -> DType:
        return self._masked_data.dtype

    @property
    def device(self) -> Device:
        return self._masked_data.device

    @property
    def layout(self) -> Layout:
        return self._masked_data.layout

    @property
    def ndim(self) -> int:
        return self._masked_data.ndim

    @property
    def requires_grad(self) -> bool:
        return self._masked_data.requires_grad

    @property
    def grad(self) -> MaskedTensor | None:
        """The gradient of the data, with the same mask, or None."""
        grad = self._masked_data.grad
        return None if grad is None else MaskedTensor._of(grad, self._masked_mask)

    def dim(self) -> int:
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return self._masked_data.numel()

    def get_data(self) -> Tensor:
        """Returns the data, with the elements that are masked out."""
        return self._masked_data

    def get_mask(self) -> Tensor:
        """Returns the mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """Returns the data with a value where they are masked out."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        self._masked_data.requires_grad_(requires_grad)
        return self

    def backward(self, gradient: Any = None) -> None:
        """Computes the gradients of the graph, for the elements that the mask keeps."""
        if isinstance(gradient, MaskedTensor):
            gradient = gradient.to_tensor(0)
        if gradient is None and self.ndim:
            raise RuntimeError("backward: self has dimensions: gradient must be given")
        self._masked_data.backward(gradient)

    def item(self) -> Any:
        return self._masked_data.item()

    def tolist(self) -> Any:
        return listed(self._masked_data.tolist(), self._masked_mask.tolist())

    def __len__(self) -> int:
        return len(self._masked_data)

    def __getitem__(self, key: Any) -> MaskedTensor:
        return MaskedTensor._of(self._masked_data[key], self._masked_mask[key])

    # ---- functions ----

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return applied(getattr(func, "__name__", str(func)).strip("_"), func, args, kwargs or {})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Finds methods of Tensor that masked tensors have."""
        if name not in METHODS:
            raise AttributeError(f"'MaskedTensor' object has no attribute '{name}'")
        function = getattr(Tensor, name)
        return lambda *args, **kwargs: applied(name, function, (self, *args), kwargs)

    def __repr__(self) -> str:
        if not self.ndim:
            kept = bool(self._masked_mask)
            shown = element(self.item()) if kept else "--"
            return f"MaskedTensor({shown}, {kept})"
        rows = "\n".join("  " + line for line in shown_rows(self).split("\n"))
        return f"MaskedTensor(\n{rows}\n)"


def operator_of(name: str) -> Callable[..., Any]:
    """Returns a method that applies an operator of Tensor."""
    function = getattr(Tensor, f"__{name}__")
    return lambda self, *others: applied(name, function, (self, *others), {})


for _name in OPERATORS:
    setattr(MaskedTensor, f"__{_name}__", operator_of(_name))


def applied(name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Calls a function of tensors for masked ones."""
    if name == "where":
        return where(*args, **kwargs)
    if name in REDUCTIONS:
        return reduced(name, *args, **kwargs)
    if name in ("all", "any"):
        return tested(name == "all", func, *args, **kwargs)
    if name in MOVES:
        first, *others = args
        mask = func(first.get_mask(), *others, **kwargs)
        return MaskedTensor._of(func(first.get_data(), *others, **kwargs), mask)
    if name in SPLITS:
        first, *others = args
        masks = func(first.get_mask(), *others, **kwargs)
        return tuple(map(MaskedTensor._of, func(first.get_data(), *others, **kwargs), masks))
    if name in JOINS:
        return joined(func, *args, **kwargs)
    if name in NORMALIZATIONS:
        return normalized(name, *args, **kwargs)
    if name not in UNARY and name not in BINARY:
        raise TypeError(f"{name}: not a function of masked tensors: use get_data() and get_mask()")
    given = [x for x in (*args, *kwargs.values()) if isinstance(x, MaskedTensor)]
    mask = given[0].get_mask()
    if not all(mask.equal(x.get_mask()) for x in given[1:]):
        raise ValueError(f"{name}: input masks must match")
    named = {key: data_of(x) for key, x in kwargs.items()}
    return MaskedTensor._of(func(*map(data_of, args), **named), mask)


def where(condition: Tensor, input: Any, other: Any) -> MaskedTensor:
    """Chooses elements and their masks."""
    return MaskedTensor._of(
        ops.where(condition, data_of(input), data_of(other)),
        ops.where(condition, mask_of(input, condition), mask_of(other, condition)),
    )


def joined(func: Any, tensors: Any, *args: Any, **kwargs: Any) -> MaskedTensor:
    """Joins data and masks; all of a tensor counts."""
    data = [data_of(x) for x in tensors]
    masks = [mask_of(x, d) for x, d in zip(tensors, data)]
    return MaskedTensor._of(func(data, *args, **kwargs), func(masks, *args, **kwargs))


def normalized(
    name: str, input: MaskedTensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> MaskedTensor:
    """Calls softmax or its like for the elements that the mask keeps."""
    from . import masked

    if dim is None:
        raise TypeError(f"{name}: dim must be given")
    mask = input.get_mask()
    data = getattr(masked, name)(input.get_data(), dim, dtype=dtype, mask=mask)
    return MaskedTensor._of(data, mask)


def reduced(name: str, x: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    """Reduces the elements that the mask keeps, by a function of tt.masked."""
    from . import masked

    given = {**dict(zip(ARGUMENTS.get(name, ("dim", "keepdim")), args)), **kwargs}
    if name == "norm":
        given["ord"] = given.pop("p", 2.0)
    dim, mask = given.get("dim"), x.get_mask()
    data = getattr(masked, name)(x.get_data(), mask=mask, **given)
    return MaskedTensor._of(data, any_of(mask, dim, bool(given.get("keepdim"))))


def tested(
    is_all: bool, func: Any, x: MaskedTensor, dim: Any = None, keepdim: bool = False
) -> MaskedTensor:
    """Calls all or any for the elements that the mask keeps."""
    data, kept = x.to_tensor(is_all), any_of(x.get_mask(), dim, keepdim)
    return MaskedTensor._of(func(data) if dim is None else func(data, dim, keepdim), kept)


def any_of(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """Returns whether the mask keeps an element, of all or along dimensions."""
    if dim is None:
        return mask.any() if not keepdim else mask.any().reshape([1] * mask.ndim)
    return ops.any(mask, dim, keepdim)


def data_of(x: Any) -> Any:
    """Returns the data of a masked tensor, or x."""
    return x.get_data() if isinstance(x, MaskedTensor) else x


def mask_of(x: Any, like: Tensor) -> Tensor:
    """Returns the mask of a masked tensor; all of x counts otherwise."""
    return x.get_mask() if isinstance(x, MaskedTensor) else ops.ones_like(like).bool()


def listed(data: Any, mask: Any) -> Any:
    """Returns lists of the elements, None where they are masked out."""
    if isinstance(data, list):
        return [listed(x, m) for x, m in zip(data, mask)]
    return data if mask else None


def element(x: Any) -> str:
    """Returns how an element is shown."""
    return f"{x:8.4f}" if isinstance(x, float) else str(x)


def shown_rows(x: MaskedTensor) -> str:
    """Returns the elements in rows, -- where they are masked out."""
    data, mask = x.get_data().detach(), x.get_mask()
    if data.ndim > 1:
        parts = [shown_rows(MaskedTensor._of(d, m)) for d, m in zip(data, mask)]
        parts = ["\n".join("  " + line for line in part.split("\n")) for part in parts]
        return "[\n" + ",\n".join(parts) + "\n]"
    kept = mask.tolist()
    shown = list(map(element, data.tolist()))
    width = max((len(text) if keep else 8 for text, keep in zip(shown, kept)), default=0)
    return "[" + ", ".join(t if keep else "--".rjust(width) for t, keep in zip(shown, kept)) + "]"


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """Returns a masked tensor with a copy of data: a new leaf."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Returns a masked tensor of data, to which gradients flow."""
    MaskedTensor(data.detach(), mask)  # checks
    return MaskedTensor._of(data, mask)


def is_masked_tensor(obj: Any) -> bool:
    """Returns whether obj is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)
