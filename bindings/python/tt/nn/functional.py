"""Functions of neural networks, with the API of torch.nn.functional."""
from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, Callable, Sequence

from .. import _ops
from .._interception import overridable
from .._tensor import Tensor
from .multi_head import multi_head_attention_forward as multi_head_attention_forward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._ops.functional import *  # noqa: F403

_OWN = (
    "fold grouped_mm gumbel_softmax multi_head_attention_forward triplet_margin_with_distance_loss unfold "
    "upsample upsample_bilinear upsample_nearest"
)
# In-place functions -> the functions that take inplace=True
_IN_PLACE = "celu_ elu_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_ threshold_".split()
# Pooling with the positions of the maxima -> the functions that take return_indices=True
_WITH_INDICES = [
    f"{name}_with_indices"
    for name in (
        "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d "
        "fractional_max_pool3d max_pool1d max_pool2d max_pool3d"
    ).split()
]
# Names of other modules that PyTorch's module has, too -> these modules
_ELSEWHERE = {
    "conv_tbc": ".._torch_numeric",
    "handle_torch_function": "..overrides",
    "has_torch_function": "..overrides",
}
__all__ = sorted([*_ops.PLACES["nn.functional"].split(), *_OWN.split()])

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Loads an operator when it is first used."""
        if name in _IN_PLACE or name in _WITH_INDICES:
            function = globals()[name] = _form(name)
            return function
        if name == "grad":
            return import_module(".grad", __package__)
        if name in _ELSEWHERE:
            return getattr(import_module(_ELSEWHERE[name], __package__), name)
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        function = globals()[name] = _ops.find("nn.functional", name)
        return function

    def __dir__() -> list[str]:
        return __all__

    @overridable
    def softmax(input, dim=None, _stacklevel=3, dtype=None):
        return _ops.softmax(input, usual_dim("softmax", input, dim), dtype=dtype)

    @overridable
    def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
        return _ops.log_softmax(input, usual_dim("log_softmax", input, dim), dtype=dtype)

    @overridable
    def softmin(input, dim=None, _stacklevel=3, dtype=None):
        return _ops.softmin(input, usual_dim("softmin", input, dim), dtype=dtype)


def usual_dim(name: str, input: Tensor, dim: int | None) -> int:
    """Returns the dimension of softmax and similar functions; None: PyTorch's legacy default."""
    if dim is not None:
        return dim
    warnings.warn(f"{name}: give dim, whose implicit choice is deprecated", stacklevel=3)
    return 0 if input.ndim in (0, 1, 3) else 1


def _form(name: str) -> Callable[..., Any]:
    """Returns the variant of a function that works in place or also returns indices."""
    from inspect import signature

    option = "inplace" if name.endswith("_") else "return_indices"
    function = _ops.find("nn.functional", name.removesuffix("_with_indices").rstrip("_"))

    def form(*args: Any, **options: Any) -> Any:
        return function(*args, **{**options, option: True})

    shown = signature(function)
    kept = [p for p in shown.parameters.values() if p.name != option]
    form.__name__ = form.__qualname__ = name
    form.__signature__ = shown.replace(parameters=kept)  # type: ignore[attr-defined]
    form.__doc__ = f"Calls {function.__name__} with {option}=True."
    return form


@overridable
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draws from the Gumbel-softmax distribution (Jang et al. 2016).

    logits: logarithms of unnormalised probabilities
    tau: temperature
    hard: the result is one-hot, with the gradient of the soft one
    eps: ignored, as by PyTorch
    dim: dimension of the softmax
    """
    gumbels = -_ops.find("tt", "empty_like")(logits).exponential_().log()
    soft = _ops.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    one_hot = _ops.find("tt", "zeros_like")(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


@overridable
def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Calls interpolate(). This is its former name."""
    interpolate = _ops.find("nn.functional", "interpolate")
    return interpolate(input, size, scale_factor, mode, align_corners)


@overridable
def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Calls interpolate() with mode="nearest"."""
    return _ops.find("nn.functional", "interpolate")(input, size, scale_factor, "nearest")


@overridable
def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Calls interpolate() with mode="bilinear" and align_corners=True."""
    interpolate = _ops.find("nn.functional", "interpolate")
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


@overridable
def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Returns the elements of each window of the last two dimensions as a column.

    input: (N, C, H, W) or (C, H, W); the result is (N, C * kernel, windows)
    kernel_size: (rows, columns) of a window, or one int for both, as for the next three
    dilation: step between the elements of a window
    padding: zeros added on all sides
    stride: step between windows
    """
    return _ops.im2col(input, kernel_size, dilation, padding, stride)


@overridable
def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Adds up columns as windows of an image.

    input: (N, C * kernel, windows), as unfold() returns it
    output_size: (rows, columns) of the image, or one int for both
    kernel_size: (rows, columns) of a window, or one int for both, as for the next three
    dilation: step between the elements of a window
    padding: zeros that were added on all sides
    stride: step between windows
    """
    return _ops.col2im(input, output_size, kernel_size, dilation, padding, stride)


@overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Computes max(0, margin + distance(anchor, positive) - distance(anchor, negative)).

    distance_function: the distance of two tensors; None: pairwise_distance()
    margin: difference of the distances above which the loss is 0; positive
    swap: uses the distance of positive and negative if it is smaller
    reduction: "none", "sum" or "mean"
    """
    name = "triplet_margin_with_distance_loss"
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"{name}: reduction is {reduction!r}: must be none, sum or mean")
    if not margin > 0:
        raise ValueError(f"{name}: margin is {margin}: must be greater than 0")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            f"{name}: anchor, positive and negative have {anchor.ndim}, {positive.ndim} and "
            f"{negative.ndim} dimensions: must be equal"
        )
    distance = distance_function or _ops.find("nn.functional", "pairwise_distance")
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = _ops.minimum(far, distance(positive, negative))
    loss = _ops.clamp(margin + near - far, min=0)
    return loss if reduction == "none" else getattr(loss, reduction)()


@overridable
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Multiplies groups of matrices, as of experts that take parts of a batch.

    mat_a: (groups, m, k), or a matrix whose rows, or columns if mat_b is one too, are divided
    mat_b: (groups, k, n), or a matrix whose columns, or rows if mat_a is one too, are divided
    offs: where each group ends, for operands that are matrices; what is behind the last one is 0
    out_dtype: the dtype of the result, at first that of the operands
    """
    name = "grouped_mm"
    if bias is not None:
        raise NotImplementedError(f"{name}: bias must be None")
    if not (mat_a.ndim in (2, 3) and mat_b.ndim in (2, 3)):
        raise ValueError(f"{name}: operands of {mat_a.ndim} and {mat_b.ndim} dimensions: not 2, 3")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise ValueError(f"{name}: offs must be given unless both operands have 3 dimensions")
    if offs is None:
        result = mat_a @ mat_b
    else:
        ends = offs.tolist()
        spans = list(zip([0, *ends], ends))
        if mat_a.ndim == mat_b.ndim:
            result = _ops.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in spans])
        elif mat_a.ndim == 2:
            parts = [mat_a[i:j] @ mat_b[group] for group, (i, j) in enumerate(spans)]
            rest = mat_a.new_zeros(mat_a.shape[0] - ends[-1], mat_b.shape[2])
            result = _ops.cat([*parts, rest], 0)
        else:
            parts = [mat_a[group] @ mat_b[:, i:j] for group, (i, j) in enumerate(spans)]
            rest = mat_a.new_zeros(mat_a.shape[1], mat_b.shape[1] - ends[-1])
            result = _ops.cat([*parts, rest], 1)
    return result if out_dtype is None else result.to(out_dtype)
