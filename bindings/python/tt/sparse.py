"""Products of sparse and dense matrices, with the API of torch.sparse.

A SparseTensor is no tt.Tensor, but a Python object with a dense tensor of indices and one of
values, which has gradients as any tensor. A product is an embedding_bag: each row of the sparse
matrix is a bag of rows of the dense one, which its values multiply.
"""
from __future__ import annotations

from math import prod
from typing import Any, Callable, NamedTuple

from . import _ops as ops
from ._convert import instance, is_number
from ._create import as_tensor
from ._interception import overridable
from ._class_name import class_name
from ._layout import layout as Layout
from ._layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ._settings import broadcast_shapes, print_options
from ._tensor import Tensor
from ._tensor_str import _tensor_str
from ._types import BY_NAME, Size, int64
from ._types import device as Device
from ._types import dtype as DType
from .errors import DtypeError, InvalidArgumentError, OutOfRangeError, ShapeError

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "SparseTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "spdiags",
    "spmm",
    "sum",
    "to_sparse",
]


# functions of one element that are 0 at 0
KEEP_ZERO = (
    "abs absolute arcsin arcsinh arctan arctanh asin asinh atan atanh ceil deg2rad erf erfinv "
    "expm1 floor frac isinf isneginf isposinf log1p nan_to_num neg negative positive rad2deg relu "
    "round sgn sign signbit sin sinh sqrt square tan tanh trunc"
).split()


class ByRows(NamedTuple):
    """The places of a matrix, row by row."""

    starts: Tensor  # of each row, and the end of the last one
    columns: Tensor
    order: Tensor | None  # of the values by rows; None: they are in order


class SparseTensor:
    """A tensor of which only the listed elements may differ from 0.

    indices: (sparse_dim, n), the position of each value. values: (n, …): dense tensors if they have
    more than one dimension. For matrices in the layout sparse_csr, crow has the first position of
    each row.
    """

    is_sparse = True
    is_cpu = property(lambda self: self._values_.is_cpu)

    def __init__(
        self,
        indices: Tensor,
        values: Tensor,
        size: Any,
        is_coalesced: bool = False,
        crow: Tensor | None = None,
    ) -> None:
        self._indices_, self._values_ = indices, values
        self.shape = Size(size)
        self._coalesced, self._crow = is_coalesced, crow
        self._sorted: tuple[Tensor, int, ByRows] | None = None

    # ---- parts ----

    @property
    def layout(self) -> Layout:
        return sparse_coo if self._crow is None else sparse_csr

    @property
    def is_sparse_csr(self) -> bool:
        return self._crow is not None

    @property
    def dtype(self) -> DType:
        return self._values_.dtype

    @property
    def device(self) -> Device:
        return self._values_.device

    @property
    def requires_grad(self) -> bool:
        return self._values_.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Sets whether the values require gradients. Returns self."""
        self._values_.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient of the values as a sparse tensor, or None."""
        grad = self._values_.grad
        return None if grad is None else self._with(grad)

    def is_floating_point(self) -> bool:
        return self._values_.is_floating_point()

    def is_complex(self) -> bool:
        return self._values_.is_complex()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        """Returns the size of all dimensions, or of one."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return prod(self.shape)

    def sparse_dim(self) -> int:
        return self._indices_.shape[0]

    def dense_dim(self) -> int:
        return self._values_.ndim - 1

    def is_coalesced(self) -> bool:
        """Returns whether the positions are sorted and unique."""
        return self._coalesced

    def _nnz(self) -> int:
        return self._values_.shape[0]

    def _indices(self) -> Tensor:
        return self._indices_

    def _values(self) -> Tensor:
        return self._values_

    def indices(self) -> Tensor:
        """Returns the indices of a coalesced tensor."""
        return self._known("indices")._indices_

    def values(self) -> Tensor:
        """Returns the values of a coalesced tensor."""
        return self._known("values")._values_

    def _known(self, what: str) -> SparseTensor:
        if not self._coalesced:
            raise InvalidArgumentError(f"{what}: self is not coalesced: call coalesce() first")
        return self

    def crow_indices(self) -> Tensor:
        """Returns the first position of each row of a sparse_csr matrix."""
        return instance(Tensor, self._crow, "crow_indices", "self: a sparse_csr matrix")

    def col_indices(self) -> Tensor:
        """Returns the column indices of a sparse_csr matrix."""
        instance(Tensor, self._crow, "col_indices", "self: a sparse_csr matrix")
        return self._indices_[1]

    def _by_rows(self) -> ByRows:
        """Returns the places of a matrix by rows, which are found once."""
        indices = self._indices_
        if self._sorted and self._sorted[0] is indices and self._sorted[1] == indices._version:
            return self._sorted[2]
        rows, columns = indices.unbind(0)
        order = None
        if not (self._coalesced or bool((rows[1:] >= rows[:-1]).all())):
            order = ops.argsort(rows, stable=True)
            columns = columns[order]
        starts = self._crow
        if starts is None:
            counts = ops.bincount(rows, minlength=self.shape[0])
            starts = ops.cat([ops.zeros(1, dtype=int64, device=self.device), ops.cumsum(counts, 0)])
        found = ByRows(starts, columns, order)
        self._sorted = indices, indices._version, found
        return found

    # ---- conversions ----

    def _with(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._indices_, values, self.shape, self._coalesced, self._crow)

    def coalesce(self) -> SparseTensor:
        """Returns self with sorted positions; values at the same position are added."""
        if self._coalesced:
            return self
        n = self.sparse_dim()
        sizes = self.shape[:n]
        flat = ops.zeros(self._nnz(), dtype=int64, device=self.device)
        for row, size in zip(self._indices_, sizes):
            flat = flat * size + row
        places, which = ops.unique(flat, return_inverse=True)
        zeros = ops.zeros(
            (places.shape[0], *self._values_.shape[1:]), dtype=self.dtype, device=self.device
        )
        values = ops.index_add(zeros, 0, which, self._values_)
        rows = []
        for size in reversed(sizes):
            rows.append(places % max(size, 1))
            places = ops.floor_divide(places, max(size, 1))
        return SparseTensor(ops.stack(rows[::-1]), values, self.shape, True)

    def to_dense(self) -> Tensor:
        """Returns a dense tensor."""
        zeros = ops.zeros(self.shape, dtype=self.dtype, device=self.device)
        places = tuple(self._indices_.unbind(0))
        return ops.index_put(zeros, places, self._values_, True)

    def to_sparse(self, *args: Any, layout: Any = None, blocksize: Any = None) -> SparseTensor:
        """Returns self in the layout sparse_coo, or another one."""
        if layout is sparse_csr:
            return self.to_sparse_csr()
        if layout not in (None, sparse_coo):
            from ._compressed import compressed

            return compressed(self, layout, blocksize)
        return SparseTensor(self._indices_, self._values_, self.shape, self._coalesced)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self) -> SparseTensor:
        """Returns a matrix in the layout sparse_csr."""
        if self.ndim != 2 or self.sparse_dim() != 2:
            raise ShapeError(f"to_sparse_csr: self is {list(self.shape)}: must be a matrix")
        matrix = self.coalesce()
        counts = ops.bincount(matrix._indices_[0], minlength=self.shape[0])
        zero = ops.zeros(1, dtype=int64, device=self.device)
        crow = ops.cat([zero, ops.cumsum(counts, 0)])
        return SparseTensor(matrix._indices_, matrix._values_, self.shape, True, crow)

    def to_sparse_csc(self) -> SparseTensor:
        """Returns a matrix in the layout sparse_csc."""
        return self.to_sparse(layout=sparse_csc)

    def to_sparse_bsr(self, blocksize: Any) -> SparseTensor:
        """Returns a matrix in the layout sparse_bsr."""
        return self.to_sparse(layout=sparse_bsr, blocksize=blocksize)

    def to_sparse_bsc(self, blocksize: Any) -> SparseTensor:
        """Returns a matrix in the layout sparse_bsc."""
        return self.to_sparse(layout=sparse_bsc, blocksize=blocksize)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Converts the values and moves all parts: see Tensor.to."""
        values = self._values_.to(*args, **kwargs)
        indices = self._indices_.to(values.device)
        crow = None if self._crow is None else self._crow.to(values.device)
        return SparseTensor(indices, values, self.shape, self._coalesced, crow)

    def cpu(self) -> SparseTensor:
        return self.to("cpu")

    def cuda(self, device: int = 0) -> SparseTensor:
        return self.to(f"cuda:{device}")

    def float(self) -> SparseTensor:
        return self._with(self._values_.float())

    def double(self) -> SparseTensor:
        return self._with(self._values_.double())

    def detach(self) -> SparseTensor:
        return self._with(self._values_.detach())

    def clone(self) -> SparseTensor:
        return self._with(self._values_.clone())

    def copy_(self, src: SparseTensor) -> SparseTensor:
        """Takes the elements of another sparse tensor of the same shape. Returns self."""
        if not isinstance(src, SparseTensor) or tuple(src.shape) != tuple(self.shape):
            raise ValueError(
                f"copy_: src is {class_name(src)} of shape {list(getattr(src, 'shape', ()))}: must "
                f"be a sparse tensor of shape {list(self.shape)}"
            )
        values = src._values_.detach().to(dtype=self.dtype, device=self.device, copy=True)
        self._indices_, self._values_ = src._indices_.to(self.device, copy=True), values
        self._coalesced = src._coalesced
        self._crow = None if src._crow is None else src._crow.to(self.device, copy=True)
        return self

    def mul_(self, other: Any) -> SparseTensor:
        """Multiplies the values by a number or a tensor of one element. Returns self."""
        self._values_ = self._values_ * other  # others may use the memory of the former ones
        return self

    def zero_(self) -> SparseTensor:
        """Removes all listed elements. Returns self."""
        self._indices_, self._values_ = self._indices_[:, :0], self._values_[:0]
        self._coalesced = True
        if self._crow is not None:
            self._crow = ops.zeros_like(self._crow)
        return self

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Returns the tensor with two of its sparse dimensions exchanged."""
        n = self.sparse_dim()
        a, b = (d + self.ndim if d < 0 else d for d in (dim0, dim1))
        if not 0 <= a < n or not 0 <= b < n:
            raise OutOfRangeError(f"transpose: dims are {dim0}, {dim1}: self has {n} sparse dims")
        order, size = list(range(n)), list(self.shape)
        order[a], order[b] = order[b], order[a]
        size[a], size[b] = size[b], size[a]
        if self._crow is not None and a != b:
            from ._compressed import CompressedTensor

            return CompressedTensor(self._crow, self.col_indices(), self._values_, size, sparse_csc)
        return SparseTensor(self._indices_[order], self._values_, size)

    def t(self) -> SparseTensor:
        """Returns the transposed matrix."""
        return self.transpose(0, 1)

    # ---- arithmetic ----

    def mm(self, mat2: Any) -> Any:
        return mm(self, mat2)

    matmul = spmm = mm

    def __matmul__(self, other: Any) -> Any:
        known = isinstance(other, (Tensor, SparseTensor))
        return mm(self, other) if known else NotImplemented

    def __rmatmul__(self, other: Tensor) -> Tensor:
        return mm(self.t(), other.t()).t()

    def __mul__(self, other: Any) -> SparseTensor:
        """Returns the product with a number, or with a sparse tensor of the same shape, or a dense
        one that broadcasts to it."""
        if isinstance(other, SparseTensor):
            other = other.to_dense()
        if isinstance(other, Tensor) and other.ndim:
            if broadcast_shapes(other.shape, self.shape) != self.shape:
                raise ShapeError(f"mul: self is {list(self.shape)}, other {list(other.shape)}")
            other = other.expand(self.shape)
            return self._with(self._values_ * other[tuple(self._indices_.unbind(0))])
        return self._with(self._values_ * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._with(self._values_ / other)

    def __neg__(self) -> SparseTensor:
        return self._with(-self._values_)

    def pow(self, exponent: Any) -> SparseTensor:
        """Returns the elements raised to a positive power."""
        if not is_number(exponent) or not exponent > 0:
            raise InvalidArgumentError(f"pow: exponent is {exponent!r}: must be a number above 0")
        known = self.coalesce()
        return known._with(known._values_**exponent)

    __pow__ = pow
    mul = multiply = __mul__
    div = divide = __truediv__

    def __getattr__(self, name: str) -> Any:
        """Finds the functions of KEEP_ZERO, such as abs(): of the values, since they keep 0; and
        what _sparse_functions has."""
        if name.startswith("__"):
            raise AttributeError(f"'SparseTensor' object has no attribute '{name}'")
        if name not in KEEP_ZERO:
            from ._sparse_functions import attribute

            return attribute(self, name)

        def method(*args: Any, **kwargs: Any) -> SparseTensor:
            known = self.coalesce()
            return known._with(getattr(known._values_, name)(*args, **kwargs))

        method.__name__ = name
        return method

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._sparse_functions import applied

        return applied(func, args, kwargs or {})

    def __getitem__(self, key: Any) -> Any:
        """Returns entries at numbers, of all dimensions or beside ":"."""
        from ._sparse_functions import getitem

        return getitem(self, key)

    def __len__(self) -> int:
        from ._sparse_functions import size_of

        return size_of(self)

    __iter__ = None  # else Python would take __getitem__ for it

    def __abs__(self) -> SparseTensor:
        return self.abs()

    def __add__(self, other: Any) -> Any:
        """Returns the sum with a sparse tensor (sparse) or a dense tensor (dense)."""
        if isinstance(other, Tensor):
            return self.to_dense() + other
        if not isinstance(other, SparseTensor):
            return NotImplemented
        if other.shape != self.shape:
            raise ShapeError(f"add: self is {list(self.shape)}, other {list(other.shape)}")
        indices = ops.cat([self._indices_, other._indices_], 1)
        values = ops.cat([self._values_, other._values_])
        return SparseTensor(indices, values, self.shape).coalesce()

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        """Returns the difference from a sparse tensor (sparse) or a dense tensor (dense)."""
        return self + -other if isinstance(other, (Tensor, SparseTensor)) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, Tensor) else NotImplemented

    def sum(self, dim: Any = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
        """Returns the sum of all elements, or sums along dimensions, which are sparse unless all
        sparse dimensions are among them.

        keepdim: keeps the dimensions with size 1. dtype: converts self first.
        """
        from ._sparse_functions import sums

        return sums(self, dim, keepdim, dtype)

    def _shown_parts(self) -> dict[str, Tensor]:
        """Returns the tensors that repr shows, by name."""
        if self._crow is None:
            return {"indices": self._indices_, "values": self._values_}
        crow, columns = self.crow_indices(), self.col_indices()
        return {"crow_indices": crow, "col_indices": columns, "values": self._values_}

    def __repr__(self) -> str:
        margin = " " * len("tensor(")
        lines = []
        for name, part in self._shown_parts().items():
            prefix = f"{name}=tensor("
            text = prefix + _tensor_str(part, len(margin) + len(prefix))
            if not part.numel():
                text += f", size={tuple(part.shape)}"
            lines.append(text + ")")
        shown = f"tensor({(',' + chr(10) + margin).join(lines)}"
        facts = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
        if self.dtype not in (BY_NAME["float32"], BY_NAME["int64"], BY_NAME["bool"]):
            facts.append(f"dtype={self.dtype}")
        facts.append(f"layout={self.layout}")
        if self.requires_grad:
            facts.append("requires_grad=True")
        if self.layout is sparse_coo:
            shown += f",\n{margin}{facts.pop(0)}"
        for fact in facts:
            width = len(shown) - shown.rfind("\n") - 1
            fits = width + len(fact) + 4 <= print_options["linewidth"]
            shown += f", {fact}" if fits else f",\n{margin}{fact}"
        return shown + ")"


class check_sparse_tensor_invariants:
    """PyTorch's switch for checks of indices. tt checks them always, so it changes nothing: as a
    context, a decorator or a class."""

    def __init__(self, enable: bool = True) -> None:
        pass

    @staticmethod
    def is_enabled() -> bool:
        """Returns True."""
        return True

    @staticmethod
    def enable() -> None:
        """Does nothing."""

    @staticmethod
    def disable() -> None:
        """Does nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function."""
        return function


# ---- construction ----


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Returns a sparse tensor with values at indices, (sparse_dim, n). Values at the same position
    are added.

    size: by default just large enough; alone, that of a tensor without values. Raises IndexError
    for indices out of it.
    """
    if values is None:
        is_coalesced = True
        if indices is not None:
            indices, size = None, indices
        if size is None:
            raise TypeError("sparse_coo_tensor(): indices and values, or size must be given")
        size = tuple(size)
        indices = ops.zeros(len(size), 0, dtype=int64)
        values = ops.zeros(0, dtype=dtype)
    places = as_tensor(indices, device=device).to(int64)
    elements = as_tensor(values, dtype=dtype, device=device)
    if not elements.ndim and places.ndim == 2:
        elements = elements.expand(places.shape[1])
    if places.ndim != 2 or elements.ndim < 1 or places.shape[1] != elements.shape[0]:
        raise ShapeError(
            f"sparse_coo_tensor: indices are {list(places.shape)}, values {list(elements.shape)}: "
            "must be (sparse_dim, n) and (n, …)"
        )
    n = places.shape[1]
    tops = (places.amax(1) + 1).tolist() if n else [0] * places.shape[0]
    shape = tuple(size) if size is not None else (*tops, *elements.shape[1:])
    if len(shape) != len(tops) + elements.ndim - 1 or shape[len(tops) :] != tuple(
        elements.shape[1:]
    ):
        raise ShapeError(
            f"sparse_coo_tensor: size is {list(shape)}, indices are {list(places.shape)}, values "
            f"{list(elements.shape)}: size must be sparse_dim sizes and those of a value"
        )
    if n and (int(places.min()) < 0 or any(top > most for top, most in zip(tops, shape))):
        raise OutOfRangeError(
            f"sparse_coo_tensor: indices reach {[top - 1 for top in tops]}: must be within "
            f"{list(shape[: len(tops)])}"
        )
    if requires_grad:  # those of the caller stay as they are
        elements = elements.detach().requires_grad_()
    return SparseTensor(places, elements, shape, bool(is_coalesced))


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Returns a sparse matrix: row i has the values crow_indices[i] … crow_indices[i + 1] - 1, in
    the columns col_indices."""
    crow = as_tensor(crow_indices, device=device).to(int64)
    columns = as_tensor(col_indices, device=device).to(int64)
    if crow.ndim != 1 or columns.ndim != 1 or not crow.numel():
        raise ShapeError("sparse_csr_tensor: crow_indices and col_indices must be vectors")
    counts = crow[1:] - crow[:-1]
    bounds = int(crow[0]), int(crow[-1])
    if bounds != (0, columns.numel()) or bool((counts < 0).any()):
        raise InvalidArgumentError(
            f"sparse_csr_tensor: crow_indices go from {bounds[0]} to {bounds[1]}: must grow from 0 "
            f"to the {columns.numel()} values"
        )
    rows = ops.repeat_interleave(ops.arange(counts.numel(), device=crow.device), counts)
    if size is None:
        size = (counts.numel(), int(columns.max()) + 1 if columns.numel() else 0)
    coo = sparse_coo_tensor(
        ops.stack([rows, columns]),
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
    )
    if len(size) != 2 or size[0] != counts.numel():
        raise ShapeError(
            f"sparse_csr_tensor: size is {list(size)}: must be {counts.numel()} rows and columns"
        )
    return SparseTensor(coo._indices_, coo._values_, size, True, crow)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> SparseTensor:
    """Returns a sparse matrix with the given diagonals.

    diagonals: (n, columns): an element has its column in the matrix. One diagonal may be 1-D.
    offsets: (n) int64: 0 is the main diagonal, positive ones are above it.
    shape: rows and columns. layout: sparse_coo, or that of compressed rows or columns.
    """
    rows = instance(Tensor, diagonals, "spdiags", "diagonals")
    places = instance(Tensor, offsets, "spdiags", "offsets")
    is_matrix = len(shape) == 2 and min(shape) >= 0
    if rows.ndim not in (1, 2) or places.ndim > 1 or not is_matrix:
        raise ShapeError(
            f"spdiags: diagonals are {list(rows.shape)}, offsets {list(places.shape)}, shape is "
            f"{list(shape)}: must be a matrix, a vector and two sizes"
        )
    if places.dtype is not int64:
        raise DtypeError(f"spdiags: offsets are {places.dtype}: must be int64")
    rows, where = ops.atleast_2d(rows), places.reshape(-1).tolist()
    if len(where) != rows.shape[0] or len(set(where)) != len(where):
        raise InvalidArgumentError(
            f"spdiags: offsets are {where}: must be {rows.shape[0]} different ones, as diagonals "
            f"are {list(rows.shape)}"
        )
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise InvalidArgumentError(
            f"spdiags: layout is {layout}: must be sparse_coo, sparse_csr or sparse_csc"
        )
    height, width = shape
    lines, columns, values = [], [], []
    for row, offset in zip(rows, where):
        end = min(width, height + offset, rows.shape[1])
        column = ops.arange(max(offset, 0), max(end, offset, 0), device=rows.device)
        lines.append(column - offset)
        columns.append(column)
        values.append(row[column])
    indices = ops.stack([ops.cat(lines), ops.cat(columns)])
    found = SparseTensor(indices, ops.cat(values), shape)
    return found if layout in (None, sparse_coo) else found.to_sparse(layout=layout)


def to_sparse(
    x: Tensor, sparse_dim: int | None = None, layout: Any = None, blocksize: Any = None
) -> SparseTensor:
    """Returns the elements of a dense tensor that differ from 0. See Tensor.to_sparse."""
    if layout in (sparse_csc, sparse_bsr, sparse_bsc):
        from ._compressed import compressed

        return compressed(x, layout, blocksize)
    n = x.ndim if sparse_dim is None else sparse_dim
    if not 1 <= n <= x.ndim:
        raise OutOfRangeError(f"to_sparse: sparse_dim is {n}: self has {x.ndim} dimensions")
    there = x.detach() != 0
    if n < x.ndim:
        there = there.flatten(n).any(-1)
    places = ops.nonzero(there)
    values = x[tuple(places.unbind(1))]
    result = SparseTensor(places.t().contiguous(), values, x.shape, True)
    return result.to_sparse_csr() if layout is sparse_csr else result


class OfSparseDtype(type):
    """The metaclass of FloatTensor and so on: isinstance(x, FloatTensor) is True for a sparse
    float32 tensor."""

    dtype: DType

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, SparseTensor) and x.dtype is cls.dtype


class TypedSparse(metaclass=OfSparseDtype):
    """FloatTensor(indices, values, size), the form before sparse_coo_tensor; FloatTensor(2, 3) and
    FloatTensor(size) have no values."""

    def __init_subclass__(cls, dtype: str) -> None:
        cls.dtype = BY_NAME[dtype]

    def __new__(cls, *given: Any) -> Any:
        if len(given) > 1 and isinstance(given[0], Tensor):
            return sparse_coo_tensor(*given, dtype=cls.dtype)
        size = given[0] if len(given) == 1 and not is_number(given[0]) else given
        no_places = ops.empty((len(size), 0), dtype=int64)
        return sparse_coo_tensor(no_places, ops.empty(0, dtype=cls.dtype), size)


class BFloat16Tensor(TypedSparse, dtype="bfloat16"):
    pass


class ByteTensor(TypedSparse, dtype="uint8"):
    pass


class CharTensor(TypedSparse, dtype="int8"):
    pass


class DoubleTensor(TypedSparse, dtype="float64"):
    pass


class FloatTensor(TypedSparse, dtype="float32"):
    pass


class HalfTensor(TypedSparse, dtype="float16"):
    pass


class IntTensor(TypedSparse, dtype="int32"):
    pass


class LongTensor(TypedSparse, dtype="int64"):
    pass


class ShortTensor(TypedSparse, dtype="int16"):
    pass


# ---- functions ----


@overridable
def mm(mat1: Any, mat2: Any) -> Any:
    """Returns the product of a sparse matrix and a dense matrix or vector, which is dense, or of
    two sparse ones, which is sparse. Gradients flow to the values and to the dense matrix."""
    if isinstance(mat2, SparseTensor):
        if isinstance(mat1, SparseTensor):
            return mm_of_sparse(mat1, mat2)
        return mm(mat2.t(), mat1.t()).t()
    if not isinstance(mat1, SparseTensor):
        return ops.matmul(mat1, mat2)
    dense = instance(Tensor, mat2, "sparse.mm", "mat2")
    if mat1.ndim != 2 or mat1.dense_dim() or dense.ndim not in (1, 2):
        raise ShapeError(
            f"sparse.mm: mat1 is {list(mat1.shape)}, mat2 {list(dense.shape)}: must be matrices"
        )
    if mat1.shape[1] != dense.shape[0]:
        raise ShapeError(
            f"sparse.mm: mat1 is {list(mat1.shape)}, mat2 {list(dense.shape)}: mat1.shape[1] must "
            "equal mat2.shape[0]"
        )
    if dense.ndim == 1:
        return mm(mat1, dense.unsqueeze(1)).squeeze(1)
    if mat1.dtype is not dense.dtype or not dense.is_floating_point():
        return mm_by_terms(mat1, dense)
    by_rows = mat1._by_rows()
    values = mat1._values_ if by_rows.order is None else mat1._values_[by_rows.order]
    return ops.embedding_bag(
        dense,
        by_rows.columns,
        by_rows.starts,
        mode="sum",
        per_sample_weights=values,
        include_last_offset=True,
    )


def mm_of_sparse(mat1: SparseTensor, mat2: SparseTensor) -> SparseTensor:
    """Returns the product of two sparse matrices, a sparse one: each element of mat1 meets the
    elements of a row of mat2."""
    sizes = f"sparse.mm: mat1 is {list(mat1.shape)}, mat2 {list(mat2.shape)}"
    if mat1.ndim != 2 or mat2.ndim != 2 or mat1.dense_dim() or mat2.dense_dim():
        raise ShapeError(f"{sizes}: must be matrices of numbers")
    if mat1.shape[1] != mat2.shape[0]:
        raise ShapeError(f"{sizes}: mat1.shape[1] must equal mat2.shape[0]")
    first, second = mat1.coalesce(), mat2.coalesce()
    starts = second._by_rows().starts
    rows, columns = first._indices_.unbind(0)
    begin, counts = starts[columns], starts[columns + 1] - starts[columns]
    which = ops.repeat_interleave(ops.arange(first._nnz(), device=first.device), counts)
    before = ops.cumsum(counts, 0) - counts  # terms of the elements of mat1 before this one
    there = ops.arange(which.numel(), device=first.device) - before[which] + begin[which]
    places = ops.stack([rows[which], second._indices_[1][there]])
    values = first._values_[which] * second._values_[there]
    product = SparseTensor(places, values, (mat1.shape[0], mat2.shape[1])).coalesce()
    return product if mat1._crow is None else product.to_sparse_csr()


def mm_by_terms(mat1: SparseTensor, dense: Tensor) -> Tensor:
    """Gathers, multiplies and adds rows of the dense matrix: for complex numbers, integers and
    matrices of two dtypes."""
    rows, columns = mat1._indices_.unbind(0)
    terms = mat1._values_.unsqueeze(1) * ops.index_select(dense, 0, columns)
    zeros = ops.zeros((mat1.shape[0], dense.shape[1]), dtype=terms.dtype, device=terms.device)
    return ops.index_add(zeros, 0, rows, terms)


spmm = dsmm = mm


def addmm(mat: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """Returns beta * mat + alpha * (mat1 @ mat2), where mat1 is sparse."""
    product = mm(mat1, mat2)
    if not (is_number(beta) and is_number(alpha)):
        raise TypeError("sparse.addmm(): beta and alpha must be numbers")
    return beta * mat + alpha * product


def sum(input: SparseTensor, dim: Any = None, dtype: DType | None = None) -> Any:
    """Returns the sum of all elements, or sums along dimensions: see SparseTensor.sum."""
    return instance(SparseTensor, input, "sparse.sum", "input").sum(dim, dtype=dtype)


def softmax(input: SparseTensor, dim: int, *, dtype: DType | None = None) -> SparseTensor:
    """Returns the softmax along a dimension, over the listed elements."""
    logs = log_softmax(input, dim, dtype=dtype)
    return logs._with(logs._values_.exp())


def log_softmax(input: SparseTensor, dim: int, *, dtype: DType | None = None) -> SparseTensor:
    """Returns the logarithms of the softmax."""
    x = instance(SparseTensor, input, "sparse.softmax", "input").coalesce()
    if not -x.ndim <= dim < x.ndim:
        raise OutOfRangeError(f"sparse.softmax: dim is {dim}: input has {x.ndim} dimensions")
    dim, n = dim % x.ndim, x.sparse_dim()
    values = x._values_ if dtype is None else x._values_.to(dtype)
    if dim >= n:
        return x._with(ops.log_softmax(values, dim - n + 1))
    group, count = lines_along(x, dim)  # elements of one line add up to 1
    zeros = values.new_zeros((count, *values.shape[1:]))
    of_values = group.reshape(-1, *[1] * x.dense_dim()).expand_as(values)
    top = ops.scatter_reduce(zeros, 0, of_values, values.detach(), "amax", include_self=False)
    shifted = values - top[group]
    total = ops.index_add(zeros, 0, group, shifted.exp())
    return x._with(shifted - total[group].log())


def lines_along(x: SparseTensor, dim: int) -> tuple[Tensor, int]:
    """Returns for each listed element the number of its line along a sparse dimension, and how many
    lines there are at most."""
    others = [d for d in range(x.sparse_dim()) if d != dim]
    if len(others) == 1:
        return x._indices_[others[0]], x.shape[others[0]]
    place = ops.zeros_like(x._indices_[dim])
    for d in others:
        place = place * x.shape[d] + x._indices_[d]
    lines, number = ops.unique(place, return_inverse=True)
    return number, lines.numel()


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0
) -> SparseTensor:
    """Returns beta * input + alpha * (mat1 @ mat2) at the places that input, a matrix, lists."""
    x = instance(SparseTensor, input, "sparse.sampled_addmm", "input")
    shapes = [list(x.shape), list(mat1.shape), list(mat2.shape)]
    if x.ndim != 2 or x.dense_dim() or mat1.ndim != 2 or mat2.ndim != 2:
        raise ShapeError(f"sparse.sampled_addmm: input, mat1, mat2 are {shapes}: must be matrices")
    if [*shapes[0], shapes[1][1]] != [shapes[1][0], shapes[2][1], shapes[2][0]]:
        raise ShapeError(
            f"sparse.sampled_addmm: input, mat1, mat2 are {shapes}: must be m × n, m × k, k × n"
        )
    rows, columns = x._indices_.unbind(0)
    products = (mat1[rows] * mat2.t()[columns]).sum(-1)
    return x._with(beta * x._values_ + alpha * products)


def __dir__() -> list[str]:
    return __all__
