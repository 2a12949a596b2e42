"""Nested tensors: batches of tensors whose sizes differ, with the API of torch.nested.

A NestedTensor is no tt.Tensor, but a Python object over one tensor for each sample. Functions that
treat samples alike are called for each of them: elementwise ones, linear, layer_norm, softmax and
scaled_dot_product_attention. Dimension 0 is the batch; what reduces or moves it is refused.
"""
from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

from . import _ops as ops
from ._create import as_tensor
from ._layout import jagged
from ._layout import layout as Layout
from ._layout import strided
from ._tensor import Tensor
from ._types import Size, int64
from ._types import device as Device
from ._types import dtype as DType

__all__ = [
    "NestedTensor",
    "as_nested_tensor",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
# methods and functions -> their arguments that are dimensions, by position (self is 0) and name
DIMS: dict[str, dict[int, str]] = {
    "chunk": {2: "dim"},
    "cumsum": {1: "dim"},
    "flatten": {1: "start_dim", 2: "end_dim"},
    "log_softmax": {1: "dim"},
    "mean": {1: "dim"},
    "narrow": {1: "dim"},
    "select": {1: "dim"},
    "softmax": {1: "dim"},
    "split": {2: "dim"},
    "squeeze": {1: "dim"},
    "sum": {1: "dim"},
    "transpose": {1: "dim0", 2: "dim1"},
    "unflatten": {1: "dim"},
    "unsqueeze": {1: "dim"},
}
ALIKE = set(
    "abs add alpha_dropout bmm celu clamp clone contiguous cos detach div double dropout dropout1d "
    "elu exp float gelu ge gt half hardsigmoid hardswish hardtanh layer_norm le leaky_relu linear "
    "log log1p logical_not lt masked_fill matmul mish mul ne neg normalize pow prelu reciprocal "
    "relu relu6 requires_grad_ rms_norm rsqrt scaled_dot_product_attention sigmoid sign silu sin "
    "softplus sqrt square sub tanh to true_divide where zeros_like ones_like empty_like".split()
)
OPERATORS = "abs add ge gt le lt matmul mul neg pow radd rmul rsub rtruediv sub truediv".split()


class NestedTensor:
    """A batch of tensors of one number of dimensions. layout: strided or jagged."""

    is_nested = True
    is_sparse = False

    def __init__(self, samples: Sequence[Tensor], layout: Layout = strided) -> None:
        self._samples, self.layout = list(samples), layout

    # ---- attributes ----

    @property
    def dtype(self) -> DType:
        return self._samples[0].dtype if self._samples else as_tensor(0.0).dtype

    @property
    def device(self) -> Device:
        return self._samples[0].device if self._samples else Device("cpu")

    @property
    def ndim(self) -> int:
        return 1 + (self._samples[0].ndim if self._samples else 0)

    @property
    def requires_grad(self) -> bool:
        return any(t.requires_grad for t in self._samples)

    @property
    def grad(self) -> NestedTensor | None:
        """The gradients of the samples of a leaf, or None."""
        grads = [t.grad for t in self._samples if t.grad is not None]
        return NestedTensor(grads, self.layout) if len(grads) == len(self) else None

    @property
    def shape(self) -> Size:
        return self.size()

    def dim(self) -> int:
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        """Returns a size that all samples share. Raises RuntimeError for others, and for the whole
        shape if there are others."""
        if dim is None:
            return Size(self.size(i) for i in range(self.ndim))
        dim = dim % self.ndim
        if dim == 0:
            return len(self._samples)
        sizes = {t.shape[dim - 1] for t in self._samples}
        if len(sizes) != 1:
            raise RuntimeError(
                f"size: dimension {dim} of a nested tensor has the sizes {sorted(sizes)}"
            )
        return sizes.pop()

    def numel(self) -> int:
        return sum(t.numel() for t in self._samples)

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def values(self) -> Tensor:
        """Returns the samples of a jagged tensor, one after the other along its ragged
        dimension."""
        return ops.cat(self._samples)

    def offsets(self) -> Tensor:
        """Returns the first row of each sample in values(), and the end of the last one."""
        ends = [0]
        for t in self._samples:
            ends.append(ends[-1] + t.shape[0])
        return as_tensor(ends, dtype=int64)

    def lengths(self) -> Tensor:
        """Returns the number of rows of each sample."""
        return as_tensor([t.shape[0] for t in self._samples], dtype=int64)

    # ---- samples ----

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Returns the samples."""
        if dim % self.ndim:
            raise RuntimeError(f"unbind: dim is {dim}: must be 0 for a nested tensor")
        return tuple(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._samples)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            return self._samples[key]
        if isinstance(key, tuple) and key and isinstance(key[0], int):
            return self._samples[key[0]][key[1:]]
        if isinstance(key, tuple) and key and key[0] in (slice(None), ...):
            return NestedTensor([t[key if key[0] is ... else key[1:]] for t in self], self.layout)
        raise IndexError(f"index: {key!r} must begin with a sample's number or with :")

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """Returns a dense tensor: the samples, with padding up to the largest sizes."""
        return to_padded_tensor(self, padding, output_size)

    def tolist(self) -> list[Any]:
        return [t.tolist() for t in self]

    def backward(self, gradient: NestedTensor) -> None:
        """Computes the gradients of the graph for gradients of the samples."""
        from .autograd import backward

        backward(self._samples, list(gradient))

    def __repr__(self) -> str:
        if self.layout is jagged:
            sizes = [str(n) if n >= 0 else "j1" for n in common_sizes(self)]
            return f"NestedTensor(size=({', '.join(sizes)}), device={self.device})"
        rows = ",\n".join("  " + repr(t).replace("\n", "\n  ") for t in self)
        return f"nested_tensor([\n{rows}\n])"

    # ---- functions ----

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func)).strip("_")
        if name in ("to_padded_tensor", "unbind"):
            return getattr(args[0], name)(*args[1:], **(kwargs or {}))
        return each(name, func, args, kwargs or {})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Finds methods of Tensor that can be called for each sample."""
        if name not in ALIKE and name not in DIMS:
            raise AttributeError(f"'NestedTensor' object has no attribute '{name}'")

        def method(*args: Any, **kwargs: Any) -> Any:
            function = getattr(Tensor, name)
            return each(name, function, (self, *args), kwargs)

        return method


def operator_of(name: str) -> Callable[..., Any]:
    """Returns a method that applies an operator of Tensor to each sample."""
    function = getattr(Tensor, f"__{name}__")
    return lambda self, *others: each(name, function, (self, *others), {}, checked=False)


for _name in OPERATORS:
    setattr(NestedTensor, f"__{_name}__", operator_of(_name))


def common_sizes(nested: NestedTensor) -> list[int]:
    """Returns the sizes of a nested tensor, -1 where the samples differ."""
    sizes = [len(nested)]
    for column in zip(*(t.shape for t in nested)):
        sizes.append(column[0] if len(set(column)) == 1 else -1)
    return sizes


def each(name: str, func: Any, args: Any, kwargs: dict[str, Any], checked: bool = True) -> Any:
    """Calls a function for each sample of its nested arguments."""
    if checked and name not in ALIKE and name not in DIMS:
        raise NotImplementedError(f"{name}: not a function of nested tensors: use their samples")
    given = [x for x in (*args, *kwargs.values()) if isinstance(x, NestedTensor)]
    n = len(given[0])
    if any(len(x) != n for x in given):
        raise RuntimeError(f"{name}: nested tensors have {[len(x) for x in given]} samples")
    args, kwargs = list(args), dict(kwargs)
    for place, key in DIMS.get(name, {}).items():
        if place < len(args):
            args[place] = inner_dim(name, args[place], given[0].ndim)
        elif key in kwargs:
            kwargs[key] = inner_dim(name, kwargs[key], given[0].ndim)
        elif name in ("sum", "mean"):
            raise RuntimeError(f"{name}: a nested tensor needs dim")
    results = []
    for i in range(n):
        one = lambda x: x[i] if isinstance(x, NestedTensor) else x
        results.append(func(*map(one, args), **{key: one(x) for key, x in kwargs.items()}))
    if results and isinstance(results[0], (tuple, list)):
        return type(results[0])(NestedTensor(parts, given[0].layout) for parts in zip(*results))
    return NestedTensor(results, given[0].layout)


def inner_dim(name: str, dim: Any, ndim: int) -> Any:
    """Returns a dimension of a nested tensor as one of its samples."""
    if isinstance(dim, (tuple, list)):
        return tuple(inner_dim(name, d, ndim) for d in dim)
    if not isinstance(dim, int):
        return dim
    if not -ndim <= dim < ndim + (name == "unsqueeze"):
        raise IndexError(f"{name}: dim is {dim}: a nested tensor has {ndim} dimensions")
    if dim in (0, -ndim):
        raise RuntimeError(f"{name}: dim is {dim}: not for the samples of a nested tensor")
    return dim - 1 if dim > 0 else dim


# ---- construction ----


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """Returns a nested tensor with copies of tensors or lists as samples: a new leaf."""
    samples = [as_tensor(x, dtype=dtype, device=device) for x in tensor_list]
    copies = [t.detach().clone().requires_grad_(requires_grad) for t in samples]
    return joined("nested_tensor", copies, layout)


def as_nested_tensor(
    ts: Any, dtype: DType | None = None, device: Any = None, layout: Layout | None = None
) -> NestedTensor:
    """Returns a nested tensor of tensors, to which gradients flow."""
    samples = ts.unbind() if isinstance(ts, (Tensor, NestedTensor)) else ts
    samples = [as_tensor(x, dtype=dtype, device=device) for x in samples]
    return joined("as_nested_tensor", samples, layout)


def joined(name: str, samples: list[Tensor], layout: Layout | None) -> NestedTensor:
    """Returns a nested tensor. Raises RuntimeError for samples that do not fit."""
    if len({t.ndim for t in samples}) > 1:
        raise RuntimeError(
            f"{name}: the tensors have {[t.ndim for t in samples]} dimensions: must have as many"
        )
    if layout is jagged and len({tuple(t.shape[1:]) for t in samples}) > 1:
        raise RuntimeError(f"{name}: jagged tensors may differ in their first dimension alone")
    return NestedTensor(samples, layout or strided)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """Returns the nested tensor whose samples follow each other in values: sample i has the rows
    from offsets[i] to offsets[i + 1], or `lengths[i]` of them."""
    if jagged_dim not in (None, 1):
        raise NotImplementedError(
            f"nested_tensor_from_jagged: jagged_dim is {jagged_dim}: must be 1"
        )
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged: offsets or lengths must be given")
        offsets = ops.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    starts = offsets.tolist()
    counts = [b - a for a, b in zip(starts, starts[1:])] if lengths is None else lengths.tolist()
    return NestedTensor([values.narrow(0, a, n) for a, n in zip(starts, counts)], jagged)


def to_padded_tensor(input: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """Returns a dense tensor: the samples, with padding up to the largest sizes or output_size."""
    from .nn.functional import pad

    samples = input.unbind()
    sizes = [max(column) for column in zip(*(t.shape for t in samples))]
    if output_size is not None:
        if len(output_size) != len(sizes) + 1 or any(a < b for a, b in zip(output_size[1:], sizes)):
            raise RuntimeError(
                f"to_padded_tensor: output_size is {tuple(output_size)}: must be at least "
                f"{(len(samples), *sizes)}"
            )
        sizes = list(output_size[1:])
    rows = []
    for t in samples:
        margins = [m for size, n in zip(reversed(sizes), reversed(t.shape)) for m in (0, size - n)]
        rows.append(pad(t, margins, value=padding))
    return ops.stack(rows)


def narrow(
    tensor: Tensor, dim: int, start: Any, length: Any, layout: Layout = strided
) -> NestedTensor:
    """Returns a nested tensor of the rows start[i] … start[i] + length[i] - 1 of each sample."""
    if dim != 1:
        raise RuntimeError(f"narrow: dim is {dim}: must be 1")
    n = len(tensor)
    starts = start.tolist() if isinstance(start, Tensor) else [start] * n
    lengths = length.tolist() if isinstance(length, Tensor) else [length] * n
    return NestedTensor([t.narrow(0, a, b) for t, a, b in zip(tensor, starts, lengths)], layout)


def __dir__() -> list[str]:
    return __all__
