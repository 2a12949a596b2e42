"""Functions of tensors for sparse ones: what tt's functions and the methods of Tensor with these
names do where an argument is a SparseTensor."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from . import _ops as ops
from ._convert import is_number, wrong_kind
from ._class_name import class_name
from ._layout import sparse_coo
from ._tensor import Tensor
from ._types import BY_NAME, Size, int64
from .errors import InvalidArgumentError, OutOfRangeError, ShapeError
from .sparse import SparseTensor
from .sparse import mm as overridable_mm

mm: Callable[..., Any] = getattr(overridable_mm, "__wrapped__")
CONVERSIONS = "bfloat16 bool half int long short".split()  # methods with the names of dtypes
DTYPES = {"half": "float16", "int": "int32", "long": "int64", "short": "int16"}


def dense_of(x: Any) -> Any:
    return x.to_dense() if isinstance(x, SparseTensor) else x


def wrapped(op: str, x: SparseTensor, dim: int, more: int = 0) -> int:
    """Returns a dimension of x, or one of `more` behind them, counted from the front."""
    n = x.ndim + more
    if not -n <= dim < n:
        raise OutOfRangeError(f"{op}: dim is {dim}: self has {x.ndim} dimensions")
    return dim % n


# ---- moves ----


def cat(tensors: Sequence[SparseTensor], dim: int = 0) -> SparseTensor:
    """Concatenates sparse tensors along a sparse or a dense dimension."""
    first = tensors[0]
    for x in tensors:
        if not isinstance(x, SparseTensor):
            raise TypeError(f"cat(): tensors has a {class_name(x)} beside a SparseTensor")
    dim = wrapped("cat", first, dim)
    n = first.sparse_dim()
    others = [x.shape[:dim] + x.shape[dim + 1 :] for x in tensors]
    if any(o != others[0] or x.sparse_dim() != n for o, x in zip(others, tensors)):
        shapes = " and ".join(str(list(x.shape)) for x in tensors)
        raise ShapeError(
            f"cat: tensors are {shapes}: all sizes but that of dim {dim} must be equal"
        )
    total = sum(x.shape[dim] for x in tensors)
    size = [*first.shape[:dim], total, *first.shape[dim + 1 :]]
    places, values, before = [], [], 0
    for x in tensors:
        rows, elements = list(x._indices_.unbind(0)), x._values_
        if dim < n:
            rows[dim] = rows[dim] + before
        else:
            zeros = [list(elements.shape), list(elements.shape)]
            zeros[0][dim - n + 1], zeros[1][dim - n + 1] = before, total - before - x.shape[dim]
            left, right = (elements.new_zeros(shape) for shape in zeros)
            elements = ops.cat([left, elements, right], dim - n + 1)
        before += x.shape[dim]
        places.append(ops.stack(rows))
        values.append(elements)
    return SparseTensor(ops.cat(places, 1), ops.cat(values), size)


def stack(tensors: Sequence[SparseTensor], dim: int = 0) -> SparseTensor:
    """Joins sparse tensors along a new dimension."""
    dim = wrapped("stack", tensors[0], dim, 1)
    return cat([unsqueeze(x, dim) for x in tensors], dim)


def unsqueeze(x: SparseTensor, dim: int) -> SparseTensor:
    """Inserts a dimension of size 1: a sparse one, unless it is between dense ones."""
    dim = wrapped("unsqueeze", x, dim, 1)
    n = x.sparse_dim()
    size = [*x.shape[:dim], 1, *x.shape[dim:]]
    if dim > n:
        return SparseTensor(x._indices_, x._values_.unsqueeze(dim - n + 1), size, x._coalesced)
    rows = list(x._indices_.unbind(0))
    rows.insert(dim, ops.zeros(x._values_.shape[0], dtype=int64, device=x.device))
    return SparseTensor(ops.stack(rows), x._values_, size, x._coalesced)


def permute(x: SparseTensor, *dims: Any) -> SparseTensor:
    """Reorders the sparse dimensions, and the dense ones, each among themselves."""
    given = dims[0] if len(dims) == 1 and not is_number(dims[0]) else dims
    order = [wrapped("permute", x, d) for d in given]
    n = x.sparse_dim()
    if sorted(order) != list(range(x.ndim)) or sorted(order[:n]) != list(range(n)):
        raise InvalidArgumentError(
            f"permute: dims is {list(given)}: must have each dimension once, the {n} sparse ones "
            "before the dense ones"
        )
    values = x._values_.permute([0, *(d - n + 1 for d in order[n:])])
    return SparseTensor(x._indices_[order[:n]], values, [x.shape[d] for d in order])


def index_select(x: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """Returns the entries `index` along a dimension, which may be repeated."""
    dim = wrapped("index_select", x, dim)
    if index.dtype is not int64 or index.ndim > 1:
        raise InvalidArgumentError(
            f"index_select: index is {index.dtype} {list(index.shape)}: must be int64, with at "
            "most one dimension"
        )
    n = x.sparse_dim()
    size = [*x.shape[:dim], index.numel(), *x.shape[dim + 1 :]]
    if dim >= n:
        values = x._values_.index_select(dim - n + 1, index)
        return SparseTensor(x._indices_, values, size, x._coalesced)
    most = x.shape[dim]
    index = index.reshape(-1)
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < most:
        raise OutOfRangeError(f"index_select: index must be within the {most} entries of dim {dim}")
    wanted, order = ops.sort(index)
    row = x._indices_[dim].contiguous()
    begin = ops.searchsorted(wanted, row)
    counts = ops.searchsorted(wanted, row, right=True) - begin
    which = ops.repeat_interleave(ops.arange(row.numel(), device=x.device), counts)
    before = ops.cumsum(counts, 0) - counts
    rank = ops.arange(which.numel(), device=x.device) - before[which] + begin[which]
    places = list(x._indices_[:, which].unbind(0))
    places[dim] = order[rank]
    return SparseTensor(ops.stack(places), x._values_[which], size)


def narrow_copy(x: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """Returns the entries from start to start + length along a dimension."""
    dim = wrapped("narrow_copy", x, dim)
    start, most, n = int(start), x.shape[dim], x.sparse_dim()
    start += most if start < 0 else 0
    if not (0 <= start and 0 <= length and start + length <= most):
        raise OutOfRangeError(
            f"narrow_copy: start is {start}, length {length}: must be within the {most} entries of "
            f"dim {dim}"
        )
    size = [*x.shape[:dim], length, *x.shape[dim + 1 :]]
    if dim >= n:
        values = ops.narrow(x._values_, dim - n + 1, start, length)
        return SparseTensor(x._indices_, values, size, x._coalesced)
    row = x._indices_[dim]
    kept = (row >= start) & (row < start + length)
    places = list(x._indices_[:, kept].unbind(0))
    places[dim] = places[dim] - start
    return SparseTensor(ops.stack(places), x._values_[kept], size, x._coalesced)


def select(x: SparseTensor, dim: int, index: int) -> Any:
    """Returns one entry along a dimension: sparse, or dense if x has one sparse dimension."""
    dim = wrapped("select", x, dim)
    n, most = x.sparse_dim(), x.shape[dim]
    if not -most <= index < most:
        raise OutOfRangeError(f"select: index is {index}: dim {dim} has {most} entries")
    size = [*x.shape[:dim], *x.shape[dim + 1 :]]
    if dim >= n:
        values = x._values_.select(dim - n + 1, index)
        return SparseTensor(x._indices_, values, size, x._coalesced)
    there = ops.nonzero(x._indices_[dim] == index % most).reshape(-1)
    values = x._values_[there]
    if n == 1:
        return values.sum(0)
    rest = [row for d, row in enumerate(x._indices_[:, there].unbind(0)) if d != dim]
    return SparseTensor(ops.stack(rest), values, size, x._coalesced)


def getitem(x: SparseTensor, key: Any) -> Any:
    """Returns x[key] for numbers, and whole slices between them."""
    result: Any = x
    dim = 0
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, slice) and part == slice(None):
            dim += 1
        elif is_number(part) and not isinstance(part, bool):
            result = result.select(dim, int(part))
        else:
            raise TypeError(
                f"SparseTensor: the key has {part!r}: must be numbers and ':' (see index_select)"
            )
    return result


def sums(x: SparseTensor, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """Returns sums along dimensions: dense if all sparse ones are among them, else sparse."""
    if dtype is None and not (x.is_floating_point() or x.is_complex()):
        dtype = int64
    x = x if dtype is None else x.to(dtype)
    n = x.sparse_dim()
    if dim is None:
        given = range(x.ndim)
    else:
        given = (dim,) if is_number(dim) else dim
    dims = {wrapped("sum", x, d) for d in given}
    behind = [d - n + 1 for d in dims if d >= n]
    values = x._values_.sum(behind, keepdim) if behind else x._values_
    if dims.issuperset(range(n)):
        total = values.sum(0)
        return total.reshape([1] * n + list(total.shape)) if keepdim else total
    rows = list(x._indices_.unbind(0))
    size: list[int] = []
    places: list[Tensor] = []
    for d, length in enumerate(x.shape):
        if d not in dims:
            size.append(length)
            places += rows[d : d + 1]
        elif keepdim:
            size.append(1)
            places += [ops.zeros_like(row) for row in rows[d : d + 1]]
    unmoved = dims.isdisjoint(range(n))
    result = SparseTensor(ops.stack(places), values, size, unmoved and x._coalesced)
    return result.coalesce()


# ---- other tensors of the same kind ----


def zeros_like(
    input: SparseTensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> SparseTensor:
    """Returns a sparse tensor of this shape without elements."""
    values = input._values_[:0].detach().to(dtype=dtype, device=device)
    places = input._indices_[:, :0].to(values.device)
    empty = SparseTensor(places, values.requires_grad_(requires_grad), input.shape, True)
    if input.layout is sparse_coo:
        return empty
    blocks = tuple(input.values().shape[1:])
    return empty.to_sparse(layout=input.layout, blocksize=blocks or None)


def sparse_mask(input: Tensor, mask: SparseTensor) -> SparseTensor:
    """Returns the elements of a dense tensor at the places of a sparse one."""
    if input.shape != mask.shape:
        raise ShapeError(f"sparse_mask: self is {list(input.shape)}, mask {list(mask.shape)}")
    return mask._with(dense_of(input)[tuple(mask._indices_.unbind(0))])


def new(x: SparseTensor, *given: Any) -> Any:
    from . import sparse

    return sparse.sparse_coo_tensor(*given, dtype=x.dtype)


def converted(name: str) -> Callable[[SparseTensor], SparseTensor]:
    dtype = BY_NAME[DTYPES.get(name, name)]
    return lambda x: x._with(x._values_.to(dtype))


def type_(x: SparseTensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Returns the name of the class in PyTorch, or x with another dtype."""
    if dtype is None:
        package, _, name = x._values_.type().rpartition(".")
        return f"{package}.sparse.{name}"
    return x._with(x._values_.type(dtype))


# ---- arithmetic ----


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Returns input + alpha * other: sparse if both are, else dense."""
    if not is_number(alpha) or alpha != 1:
        other = other * alpha
    return input + other if isinstance(input, SparseTensor) else other.__radd__(input)


def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add(input, -other, alpha=alpha)


def multiply(input: Any, other: Any) -> SparseTensor:
    return input * other if isinstance(input, SparseTensor) else other * input


def taken(x: SparseTensor, result: SparseTensor) -> SparseTensor:
    """Makes x the result of a method that writes. Returns x."""
    x._indices_, x._values_ = result._indices_, result._values_
    x._coalesced, x._crow = result._coalesced, result._crow
    return x


def norm(input: SparseTensor, p: Any = 2, dim: Any = None, *given: Any, **options: Any) -> Tensor:
    """Returns the norm of all elements, or norms along dimensions, which are dense."""
    if dim is not None:
        return input.to_dense().norm(p, dim, *given, **options)
    values = input.coalesce()._values_
    rest = values.new_zeros(1) if values.numel() < input.numel() else values.new_zeros(0)
    return ops.cat([values.flatten(), rest]).norm(p, **options)


def bmm(input: Any, mat2: Any) -> Tensor:
    """Returns the products of a batch of sparse matrices and one of dense ones."""
    if not isinstance(input, SparseTensor) or not isinstance(mat2, Tensor):
        raise TypeError("bmm(): of sparse tensors, only input may be one")
    if not input.shape[0]:
        return ops.bmm(input.to_dense(), mat2)
    return ops.stack([mm(input.select(0, i), mat2[i]) for i in range(input.shape[0])])


def matmul(input: Any, mat2: Any) -> Any:
    for arg, x in (("input", input), ("mat2", mat2)):
        if not isinstance(x, (Tensor, SparseTensor)):
            raise wrong_kind("mm", arg, "Tensor", x)
    return mm(input, mat2)


def addmm(input: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return beta * dense_of(input) + alpha * mm(mat1, mat2)


def linear(input: Any, weight: Any, bias: Tensor | None = None) -> Tensor:
    product = mm(input, weight.t())
    return product if bias is None else product + bias


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": add,
    "addmm": addmm,
    "bmm": bmm,
    "cat": cat,
    "concat": cat,
    "concatenate": cat,
    "empty_like": zeros_like,
    "linear": linear,
    "matmul": matmul,
    "mm": matmul,
    "mul": multiply,
    "multiply": multiply,
    "mv": matmul,
    "sparse_mask": sparse_mask,
    "stack": stack,
    "sub": subtract,
    "subtract": subtract,
    "zeros_like": zeros_like,
}
METHODS: dict[str, Callable[..., Any]] = {
    "add": add,
    "add_": lambda x, other, *, alpha=1: taken(x, add(x, other, alpha=alpha)),
    "any": lambda x: x._values_.any(),
    "bmm": bmm,
    "div_": lambda x, other: taken(x, x / other),
    "index_select": index_select,
    "is_contiguous": lambda x: False,
    "isnan": lambda x: x._with(x._values_.isnan()),
    "mv": matmul,
    "narrow_copy": narrow_copy,
    "new": new,
    "norm": norm,
    "permute": permute,
    "select": select,
    "sparse_mask": sparse_mask,
    "sub": subtract,
    "sub_": lambda x, other, *, alpha=1: taken(x, subtract(x, other, alpha=alpha)),
    "type": type_,
    "unsqueeze": unsqueeze,
    **{name: converted(name) for name in CONVERSIONS},
}
ATTRIBUTES: dict[str, Callable[[SparseTensor], Any]] = {
    "T": SparseTensor.t,
    "mH": lambda x: (x._with(x._values_.conj()) if x.is_complex() else x).t(),
    "mT": SparseTensor.t,
    "data": SparseTensor.detach,
    "grad_fn": lambda x: x._values_.grad_fn,
    "is_cuda": lambda x: x._values_.is_cuda,
    "is_leaf": lambda x: x._values_.is_leaf,
}


def attribute(x: SparseTensor, name: str) -> Any:
    """Returns an attribute or a method of a sparse tensor that its class does not define."""
    if name in ATTRIBUTES:
        return ATTRIBUTES[name](x)
    if name not in METHODS:
        raise AttributeError(f"'SparseTensor' object has no attribute '{name}'")
    function = METHODS[name]
    return lambda *args, **kwargs: function(x, *args, **kwargs)


def applied(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a function of tensors, of which an argument is sparse."""
    full = getattr(function, "__name__", str(function))
    name = full.strip("_") if full.startswith("__") else full
    given = (*args, *kwargs.values())
    first = given[0]
    if name in FUNCTIONS:
        return FUNCTIONS[name](*args, **kwargs)
    if isinstance(first, Tensor) and name.endswith("_"):
        dense = {key: dense_of(x) for key, x in kwargs.items()}
        return function(*(dense_of(x) for x in args), **dense)
    if isinstance(first, SparseTensor) and args:
        method = getattr(first, name, None)
        if callable(method):
            return method(*args[1:], **kwargs)
    plain = getattr(function, "__wrapped__", None)
    if plain is None:
        raise TypeError(f"{name}(): a SparseTensor is given: there is no such function of them")
    return plain(*args, **kwargs)


def size_of(x: SparseTensor) -> int:
    if not x.ndim:
        raise TypeError("len() of a 0-d tensor")
    return Size(x.shape)[0]
