"""More functions of the torch namespace: in-place functions, nn.functional's with torch's
arguments, and view copies. tt.__getattr__ looks them up by name."""
from __future__ import annotations

import builtins
import math
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any, Callable, Iterator, Sequence

from . import _ops as ops
from . import errors
from ._convert import written
from ._interception import overridable
from ._tensor import Tensor
from ._types import contiguous_format, int64
from .random import Generator

# Methods that are functions, too
METHODS = (
    "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ "
    "asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ "
    "deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ "
    "lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ "
    "relu_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ "
    "trunc_ xlogy_ zero_ get_device is_conj is_neg"
).split()
FUNCTIONAL = "celu_ rrelu_ selu_".split()
# Copies of views
COPIES = (
    "alias as_strided detach diagonal expand permute select split split_with_sizes squeeze t "
    "transpose unbind unfold unsqueeze view view_as_complex view_as_real"
).split()
REDUCTIONS = ("none", "mean", "sum")  # by torch's numbers
# The arguments of losses whose reduction is a number here
ORDERS: dict[str, tuple[str, ...]] = {
    "binary_cross_entropy_with_logits": ("input", "target", "weight", "pos_weight", "reduction"),
    "cosine_embedding_loss": ("input1", "input2", "target", "margin", "reduction"),
    "hinge_embedding_loss": ("input", "target", "margin", "reduction"),
    "kl_div": ("input", "target", "reduction"),
    "margin_ranking_loss": ("input1", "input2", "target", "margin", "reduction"),
    "poisson_nll_loss": ("input", "target", "log_input", "full", "eps", "reduction"),
    "triplet_margin_loss": (
        "anchor",
        "positive",
        "negative",
        "margin",
        "p",
        "eps",
        "swap",
        "reduction",
    ),
}


def functional(name: str) -> Any:
    """Returns a function of nn.functional."""
    return ops.find("nn.functional", name)


def loss(name: str) -> Callable[..., Tensor]:
    """Returns a loss function with a numeric reduction: 0 (default) none, 1 mean, 2 sum."""
    order = ORDERS[name]

    def call(*args: Any, **options: Any) -> Tensor:
        given = dict(zip(order, args), **options)
        reduction = given.setdefault("reduction", 0)
        if not isinstance(reduction, str):
            if reduction not in (0, 1, 2):
                raise ValueError(f"{name}: reduction is {reduction}: must be 0, 1 or 2")
            given["reduction"] = REDUCTIONS[reduction]
        result: Tensor = functional(name)(**given)
        return result

    call.__name__ = name
    return call


def method_function(name: str) -> Callable[..., Any]:
    """Returns a method as a function, which takes its tensor as input=, too."""
    method = getattr(Tensor, name)

    @wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        if "input" in options:
            args = (options.pop("input"), *args)
        return method(*args, **options)

    return call


def view_copy(name: str) -> Callable[..., Any]:
    """Returns a function that copies the views that `view` returns, in row-major order."""
    method = "clone" if name == "alias" else name
    view = getattr(Tensor, method, None) or ops.find("tt", name)

    def call(input: Tensor, *args: Any, out: Any = None, **options: Any) -> Any:
        views = view(input, *args, **options)
        if out is not None:
            return written(views, out, name + "_copy", exact=True)
        if isinstance(views, tuple):
            return tuple(x.clone(memory_format=contiguous_format) for x in views)
        return views.clone(memory_format=contiguous_format)

    call.__name__ = name + "_copy"
    return call


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zeroes elements with probability p and scales the others, if train."""
    result: Tensor = functional("dropout")(input, p, train)
    return result


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Calls nn.functional.alpha_dropout."""
    result: Tensor = functional("alpha_dropout")(input, p, train)
    return result


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Calls nn.functional.feature_alpha_dropout."""
    result: Tensor = functional("feature_alpha_dropout")(input, p, train)
    return result


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zeroes whole channels, the second dimension, with probability p, if train."""
    rows = input.flatten(2) if input.ndim > 2 else input.unsqueeze(-1)
    result: Tensor = functional("dropout1d")(rows, p, train).reshape(input.shape)
    return result


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Applies dropout in place."""
    return input.copy_(dropout(input, p, train)) if train and p else input


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Applies alpha_dropout in place."""
    return input.copy_(alpha_dropout(input, p, train)) if train and p else input


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Applies feature_alpha_dropout in place."""
    return input.copy_(feature_alpha_dropout(input, p, train)) if train and p else input


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Applies feature_dropout in place."""
    return input.copy_(feature_dropout(input, p, train)) if train and p else input


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Selects rows of weight; padding_idx: -1 for none."""
    result: Tensor = functional("embedding")(
        indices,
        weight,
        padding_idx if padding_idx >= 0 else None,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )
    return result


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Calls nn.functional.layer_norm."""
    result: Tensor = functional("layer_norm")(input, normalized_shape, weight, bias, eps)
    return result


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Calls nn.functional.instance_norm."""
    result: Tensor = functional("instance_norm")(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )
    return result


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """Calls nn.functional.ctc_loss with a numeric reduction."""
    name = REDUCTIONS[reduction]
    result: Tensor = functional("ctc_loss")(
        log_probs, targets, input_lengths, target_lengths, blank, name, zero_infinity
    )
    return result


MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Calls nn.functional.grid_sample with numeric modes."""
    result: Tensor = functional("grid_sample")(
        input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners
    )
    return result


grid_sampler_2d = grid_sampler_3d = grid_sampler


def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Copies the elements start, start + step, … before end along dim."""
    part = input.movedim(dim, 0)[start:end:step].movedim(0, dim)
    if out is not None:
        copied: Tensor = written(part, out, "slice_copy", exact=True)
        return copied
    return part.contiguous()


def is_distributed(input: Tensor) -> bool:
    """Returns False: no tensor is divided among processes."""
    return False


def is_vulkan_available() -> bool:
    """Returns False."""
    return False


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Calls nn.functional.affine_grid."""
    result: Tensor = functional("affine_grid")(theta, size, align_corners)
    return result


def range(start: float, end: float, step: float = 1, **options: Any) -> Tensor:
    """Returns start, start + step, … up to and including end. Deprecated: use arange."""
    from ._types import Defaults

    n = int((end - start) / step) + 1 if step else 0
    if n < 1:
        raise ValueError(
            f"range: start is {start}, end is {end}, step is {step}: step must lead from start to "
            "end"
        )
    options["dtype"] = options.get("dtype") or Defaults.float
    steps: Tensor = ops.find("tt", "arange")(n, **options)
    return steps * step + start


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Returns the norms of order pow of v over all dimensions but dim, with sizes 1; dim -1: over
    all."""
    if dim == -1:
        return v.norm(pow)
    others = [d for d in builtins.range(v.ndim) if d != dim % v.ndim]
    vector_norm = ops.find("tt", "linalg_vector_norm")
    result: Tensor = vector_norm(v, pow, others, True) if others else v.abs()
    return result


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Returns the square roots of sums of squares over dim."""
    result: Tensor = ops.find("tt", "linalg_vector_norm")(input, 2, dim, keepdim)
    return result


def svd_lowrank(
    A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns U, S, V with A - M ≈ U diag(S) V^H of rank q, computed with random projections
    (Halko et al. 2009)."""
    from . import linalg

    a = A if M is None else A - M
    wide = a.shape[-2] < a.shape[-1]
    x = a.mH if wide else a
    basis = linalg.qr(x @ ops.find("tt", "randn")(x.shape[-1], q, dtype=x.dtype))[0]
    for _ in builtins.range(niter):
        basis = linalg.qr(x @ linalg.qr(x.mH @ basis)[0])[0]
    u, s, vh = linalg.svd(basis.mH @ x, full_matrices=False)
    left, right = basis @ u, vh.mH
    return (right, s, left) if wide else (left, s, right)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns svd_lowrank(A). center: centres the columns of A first."""
    rank = min(6, *A.shape[-2:]) if q is None else q
    if not 0 <= rank <= min(A.shape[-2:]):
        raise ValueError(f"pca_lowrank: q is {q}, A is {list(A.shape)}: q must fit both sizes")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, rank, niter)


@overridable
def split(
    tensor: Tensor,
    split_size_or_sections: int | Sequence[int],
    dim: int = 0,
    *,
    axis: int | None = None,
) -> tuple[Tensor, ...]:
    """Splits tensor along dim into views of one size, of which the last may be smaller, or of a
    list of sizes."""
    return ops.split(tensor, split_size_or_sections, dim, axis=axis)


@overridable
def repeat_interleave(
    input: Tensor | None = None,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    axis: int | None = None,
    output_size: int | None = None,
) -> Tensor:
    """Repeats each element of input, or each slice of dim, as often as repeats says. Without
    repeats, input has the numbers of copies of the indices 0, 1, …; so has repeats without
    input."""
    if input is None or repeats is None:
        copies = repeats if input is None else input
        if not isinstance(copies, Tensor) or copies.ndim != 1:
            raise errors.ShapeError(
                "repeat_interleave: repeats must be a vector of numbers of copies"
            )
        repeats = copies
        input = ops.arange(len(copies), dtype=copies.dtype, device=copies.device)
    return ops.repeat_interleave(input, repeats, dim, axis=axis, output_size=output_size)


@overridable
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Returns each tensor with at least 1 dimension: a tensor for one, else a tuple."""
    return ops.atleast_1d(tensors[0] if len(tensors) == 1 else tensors)


@overridable
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Returns each tensor with at least 2 dimensions: a tensor for one, else a tuple."""
    return ops.atleast_2d(tensors[0] if len(tensors) == 1 else tensors)


@overridable
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Returns each tensor with at least 3 dimensions: a tensor for one, else a tuple."""
    return ops.atleast_3d(tensors[0] if len(tensors) == 1 else tensors)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws from Poisson distributions with the rates input, in its dtype."""
    from .autograd import no_grad
    from .distributions._gamma import poisson as draw
    from .distributions.distribution import check_all

    rule = "poisson: a rate is negative or nan: must be at least 0"
    with no_grad(), drawing_from(generator):
        rates = input.detach()
        check_all(rates >= 0, rule, lambda: rule, errors.InvalidArgumentError)
        return draw(rates)


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws the numbers of successes in `count` trials with the probability prob."""
    from .autograd import no_grad
    from .distributions._gamma import binomial as draw

    with no_grad(), drawing_from(generator):
        return draw(*ops.broadcast_tensors(count.detach(), prob.detach()))


@contextmanager
def drawing_from(generator: Generator | None) -> Iterator[None]:
    """Makes the functions of the block draw from a generator, by default the thread's."""
    from .random import thread_generator

    if generator is None:
        yield
        return
    own = thread_generator()
    state = own.get_state()
    own.set_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(own.get_state())
        own.set_state(state)


# ---- checks ----


def _check(cond: Any, message: Any = None) -> None:
    """Raises RuntimeError unless cond is true. message: a text, or a function that returns one."""
    if not cond:
        raise RuntimeError(message() if callable(message) else message or "_check: cond is False")


def _check_value(cond: Any, message: Any = None) -> None:
    """Raises ValueError unless cond is true. message: a text, or a function that returns one."""
    if not cond:
        text = message() if callable(message) else message
        raise ValueError(text or "_check_value: cond is False")


def _check_with(error: type[Exception], cond: Any, message: Any = None) -> None:
    """Raises error unless cond is true. message: a text, or a function that returns one."""
    if not cond:
        text = message() if callable(message) else message
        raise error(text or "_check_with: cond is False")


def _check_tensor_all(cond: Tensor, message: Any = None) -> None:
    """Raises RuntimeError unless all elements of cond are true."""
    _check(bool(cond.all()), message or "_check_tensor_all: an element of cond is False")


def get_deterministic_debug_mode() -> int:
    """Returns 2 if results have the same bits in every run, else 0."""
    from ._cuda_math import chosen

    return 2 if chosen["deterministic"] else 0


def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws from Gamma distributions with these concentrations and rate 1. The result has a
    gradient."""
    from .distributions._gamma import standard_gamma

    with drawing_from(generator):
        return standard_gamma(input)


def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws from Dirichlet distributions with these concentrations along the last dimension."""
    from .distributions import Dirichlet

    with drawing_from(generator):
        return Dirichlet(input.detach()).sample()


def _grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Calls nn.functional.grouped_mm."""
    result: Tensor = import_module(".nn.functional", __package__).grouped_mm(
        mat_a, mat_b, offs=offs, bias=bias, out_dtype=out_dtype
    )
    return result


def _assert(condition: Any, message: str) -> None:
    """Raises AssertionError unless condition is true."""
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """Raises RuntimeError unless the single element of input differs from 0."""
    if not bool(input):
        raise RuntimeError(assert_msg or "_assert_async: input is 0: must be another number")


def _shape_as_tensor(input: Tensor) -> Tensor:
    """Returns the shape as a tensor of int64."""
    from ._create import tensor

    return tensor(list(input.shape), dtype=int64)


# ---- numbers of captured graphs in PyTorch, which are Python's here ----


class SymInt:
    """An int of unknown value in PyTorch. No object is one."""

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__}: tt captures graphs with Python's numbers")


class SymFloat(SymInt):
    """A float of unknown value in PyTorch. No object is one."""


class SymBool(SymInt):
    """A bool of unknown value in PyTorch. No object is one."""


def sym_int(a: Any) -> int:
    """Returns int(a)."""
    return int(a)


def sym_float(a: Any) -> float:
    """Returns float(a)."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """Returns the larger number: a float if one of them is."""
    largest = builtins.max(a, b)
    return float(largest) if isinstance(a, float) or isinstance(b, float) else largest


def sym_min(a: Any, b: Any) -> Any:
    """Returns the smaller number: a float if one of them is."""
    smallest = builtins.min(a, b)
    return float(smallest) if isinstance(a, float) or isinstance(b, float) else smallest


def sym_not(a: Any) -> bool:
    """Returns not a."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Returns t if b, else f."""
    return t if b else f


def sym_sum(args: Sequence[Any]) -> Any:
    """Returns the sum of numbers."""
    return builtins.sum(args)


def sym_sqrt(a: float) -> float:
    """Returns the square root of a number."""
    return math.sqrt(a)


# ---- control flow ----


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """Returns true_fn(*operands) if pred, a bool or a tensor of one element, else
    false_fn(*operands)."""
    return (true_fn if pred else false_fn)(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Repeats values = body_fn(*values) while cond_fn(*values). Returns the values."""
    values = tuple(carried_inputs)
    while cond_fn(*values):
        result = body_fn(*values)
        values = result if isinstance(result, tuple) else (result,)
    return values


OWN = (
    "_assert _assert_async _check _check_tensor_all _check_value _check_with _grouped_mm "
    "_sample_dirichlet _shape_as_tensor _standard_gamma SymBool SymFloat SymInt "
    "affine_grid_generator alpha_dropout alpha_dropout_ binomial cond ctc_loss dropout "
    "dropout_ embedding feature_alpha_dropout feature_alpha_dropout_ feature_dropout "
    "feature_dropout_ frobenius_norm get_deterministic_debug_mode grid_sampler grid_sampler_2d "
    "grid_sampler_3d instance_norm is_distributed is_vulkan_available layer_norm norm_except_dim "
    "pca_lowrank poisson range slice_copy svd_lowrank sym_float "
    "sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum while_loop"
).split()
# module -> names of it that are found here, too
ELSEWHERE = {
    "_C": "TensorType",
    "sparse": "dsmm",
    "_compressed": "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo",
    "_lobpcg": "lobpcg",
    "_torch_numeric": "conv_tbc empty_permuted from_file histogramdd lu ormqr segment_reduce",
    "_torch_native": (
        "convolution embedding_bag native_batch_norm native_channel_shuffle native_dropout "
        "native_group_norm native_layer_norm"
    ),
    "amp": "GradScaler",
    "amp.autocast_mode": (
        "autocast_decrement_nesting autocast_increment_nesting set_autocast_cache_enabled "
        "set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled "
        "set_autocast_gpu_dtype"
    ),
    "cuda": "Event OutOfMemoryError Stream",
    "autograd.anomaly_mode": "is_anomaly_check_nan_enabled set_anomaly_enabled",
    "futures": "Future",
    "jit": "ScriptFunction ScriptModule",
    "serialization": "PyTorchFileReader",
    "_types": "DeviceObjType legacy_contiguous_format",
    "utils.dlpack": "to_dlpack",
}
HOME = {name: module for module, names in ELSEWHERE.items() for name in names.split()}


def find(name: str) -> Any:
    """Returns the function with this name, or None."""
    if name in OWN:
        return globals()[name]
    if name in METHODS:
        return method_function(name)
    if name in FUNCTIONAL:
        return functional(name)
    if name in ORDERS:
        return loss(name)
    if name.endswith("_copy") and name[: -len("_copy")] in COPIES:
        return view_copy(name[: -len("_copy")])
    if name in HOME:
        return getattr(import_module("." + HOME[name], __package__), name)
    return None
