"""Sparse matrices in the layouts sparse_csc, sparse_bsr and sparse_bsc."""
from __future__ import annotations

from typing import Any

from . import _ops as ops
from ._create import as_tensor
from ._layout import layout as Layout
from ._layout import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ._tensor import Tensor
from ._types import device as Device
from ._types import dtype as DType
from ._types import BY_NAME, int64
from .errors import InvalidArgumentError, ShapeError
from .sparse import SparseTensor, sparse_csr_tensor, to_sparse

__all__ = [
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_csc_tensor",
]
BY_ROWS = (sparse_csr, sparse_bsr)
TRANSPOSED = {sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


class CompressedTensor(SparseTensor):
    """A sparse matrix whose columns, or blocks of rows or columns, follow each other.

    starts: the first position of each column (csc), row of blocks (bsr) or column of blocks (bsc).
    others: the other index of each value or block. values: (n,), or (n, rows, columns) of blocks.
    """

    def __init__(
        self, starts: Tensor, others: Tensor, values: Tensor, size: Any, layout: Layout
    ) -> None:
        self._starts, self._others, self._parts, self._layout = starts, others, values, layout
        lines = ops.arange(starts.numel() - 1, device=starts.device)
        lines = ops.repeat_interleave(lines, starts[1:] - starts[:-1])
        pair = (lines, others) if layout in BY_ROWS else (others, lines)
        blocks = values.shape[1:]
        if blocks:
            shape = (len(values), *blocks)
            rows = (
                ops.arange(blocks[0], device=starts.device)[:, None]
                + pair[0][:, None, None] * blocks[0]
            )
            columns = (
                ops.arange(blocks[1], device=starts.device) + pair[1][:, None, None] * blocks[1]
            )
            pair = (rows.expand(shape).flatten(), columns.expand(shape).flatten())
        super().__init__(ops.stack(pair), values.flatten(), size)

    @property
    def layout(self) -> Layout:
        return self._layout

    def values(self) -> Tensor:
        """Returns the values, or the blocks."""
        return self._parts

    def indices(self) -> Tensor:
        raise RuntimeError(f"indices: the layout is {self.layout}: must be sparse_coo")

    def _index(self, what: str, layouts: tuple[Layout, ...], index: Tensor) -> Tensor:
        if self.layout not in layouts:
            raise RuntimeError(f"{what}: the layout is {self.layout}: must be {layouts[0]}")
        return index

    def crow_indices(self) -> Tensor:
        return self._index("crow_indices", (sparse_bsr,), self._starts)

    def col_indices(self) -> Tensor:
        return self._index("col_indices", (sparse_bsr,), self._others)

    def ccol_indices(self) -> Tensor:
        """Returns the first position of each column, or column of blocks."""
        return self._index("ccol_indices", (sparse_csc, sparse_bsc), self._starts)

    def row_indices(self) -> Tensor:
        """Returns the row of each value, or the row of blocks of each block."""
        return self._index("row_indices", (sparse_csc, sparse_bsc), self._others)

    def _nnz(self) -> int:
        return len(self._parts)

    def _with(self, values: Tensor) -> CompressedTensor:
        parts = values.reshape(self._parts.shape)
        return CompressedTensor(self._starts, self._others, parts, self.shape, self.layout)

    def coalesce(self) -> SparseTensor:
        """Returns self, whose positions are unique."""
        return self

    def to_sparse(self, *args: Any, layout: Any = None, blocksize: Any = None) -> SparseTensor:
        coo = SparseTensor(self._indices_, self._values_, self.shape).coalesce()
        return coo.to_sparse(*args, layout=layout, blocksize=blocksize)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self) -> SparseTensor:
        return self.to_sparse(layout=sparse_csr)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        values = self._parts.to(*args, **kwargs)
        starts, others = self._starts.to(values.device), self._others.to(values.device)
        return CompressedTensor(starts, others, values, self.shape, self.layout)

    def t(self) -> SparseTensor:
        size = (self.shape[1], self.shape[0])
        if self.layout is sparse_csc:
            return sparse_csr_tensor(self._starts, self._others, self._parts, size)
        blocks = self._parts.transpose(1, 2)
        return CompressedTensor(self._starts, self._others, blocks, size, TRANSPOSED[self.layout])

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        return self.t() if {dim0 % 2, dim1 % 2} == {0, 1} else self

    def _shown_parts(self) -> dict[str, Tensor]:
        by_rows = self.layout in BY_ROWS
        names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
        return {names[0]: self._starts, names[1]: self._others, "values": self._parts}


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    layout: Layout,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Returns a sparse matrix in the layout sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.

    compressed_indices: the first position of each row or column, or row or column of blocks, and
    the end of the last one. plain_indices: the other index of each value. size: by default just
    large enough. Raises RuntimeError for indices that do not fit.
    """
    if layout is sparse_csr:
        return sparse_csr_tensor(
            compressed_indices,
            plain_indices,
            values,
            size,
            dtype=dtype,
            device=device,
            requires_grad=requires_grad,
        )
    if layout not in TRANSPOSED:
        raise InvalidArgumentError(
            f"sparse_compressed_tensor: layout is {layout}: must be compressed"
        )
    name = f"{layout.name}_tensor"
    starts = as_tensor(compressed_indices, device=device).to(int64)
    others = as_tensor(plain_indices, device=device).to(int64)
    parts = as_tensor(values, dtype=dtype, device=device)
    check_indices(name, starts, others, parts, 1 if layout is sparse_csc else 3)
    n = others.numel()
    block = tuple(parts.shape[1:]) or (1, 1)
    by_rows = layout in BY_ROWS
    lines, across = starts.numel() - 1, int(others.max()) + 1 if n else 0
    least = (lines, across) if by_rows else (across, lines)
    if size is None:
        size = (least[0] * block[0], least[1] * block[1])
    fits = len(size) == 2 and all(s % b == 0 and s >= m * b for s, m, b in zip(size, least, block))
    if not fits or size[not by_rows] != lines * block[not by_rows] or n and int(others.min()) < 0:
        raise InvalidArgumentError(
            f"{name}: size is {list(size)}: must hold {lines} {'rows' if by_rows else 'columns'} "
            f"and indices up to {across - 1}, of blocks {list(block)}"
        )
    if requires_grad:
        parts = parts.detach().requires_grad_()
    return CompressedTensor(starts, others, parts, size, layout)


def check_indices(name: str, starts: Tensor, others: Tensor, parts: Tensor, ndim: int) -> None:
    """Raises unless starts and others are compressed and plain indices of values of ndim
    dimensions."""
    if starts.ndim != 1 or others.ndim != 1 or parts.ndim != ndim or not starts.numel():
        raise ShapeError(
            f"{name}: indices are {list(starts.shape)} and {list(others.shape)}, values "
            f"{list(parts.shape)}: must be two vectors and {ndim}-d values"
        )
    n = others.numel()
    steps = starts[1:] - starts[:-1]
    if (int(starts[0]), int(starts[-1]), len(parts)) != (0, n, n) or bool((steps < 0).any()):
        raise InvalidArgumentError(
            f"{name}: the compressed indices go from {int(starts[0])} to {int(starts[-1])}: must "
            f"grow from 0 to the {len(parts)} values, with {n} plain indices"
        )


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseTensor:
    """Returns a sparse matrix whose columns follow each other: see sparse_compressed_tensor."""
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, layout=sparse_csc, **options
    )


def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseTensor:
    """Returns a sparse matrix of blocks, whose rows follow each other: see
    sparse_compressed_tensor."""
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, layout=sparse_bsr, **options
    )


def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseTensor:
    """Returns a sparse matrix of blocks, whose columns follow each other: see
    sparse_compressed_tensor."""
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, layout=sparse_bsc, **options
    )


def starts_of(lines: Tensor, n: int) -> Tensor:
    """Returns the first position of each of n lines, and the end of the last one."""
    zero = ops.zeros(1, dtype=int64, device=lines.device)
    return ops.cat([zero, ops.cumsum(ops.bincount(lines, minlength=n), 0)])


def compressed(x: Any, layout: Layout, blocksize: Any = None) -> SparseTensor:
    """Returns a matrix, dense or sparse, in one of the layouts of this module."""
    if x.ndim != 2:
        raise ShapeError(f"to_{layout.name}: self is {list(x.shape)}: must be a matrix")
    if layout is sparse_csc:
        turned = (
            (to_sparse(x) if isinstance(x, Tensor) else x.to_sparse().coalesce()).t().coalesce()
        )
        columns, rows = turned._indices_.unbind(0)
        starts = starts_of(columns, x.shape[1])
        return CompressedTensor(starts, rows, turned._values_, x.shape, layout)
    block = tuple(blocksize) if blocksize is not None else ()
    if len(block) != 2 or any(b < 1 or s % b for s, b in zip(x.shape, block)):
        raise InvalidArgumentError(
            f"to_{layout.name}: blocksize is {blocksize}, self {list(x.shape)}: must be two numbers "
            "that divide the sizes"
        )
    dense = x if isinstance(x, Tensor) else x.to_dense()
    grid = (x.shape[0] // block[0], x.shape[1] // block[1])
    blocks = dense.reshape(grid[0], block[0], grid[1], block[1]).transpose(1, 2)
    by_rows = layout is sparse_bsr
    if not by_rows:
        blocks = blocks.transpose(0, 1)
    places = ops.nonzero((blocks.detach() != 0).flatten(2).any(-1)).unbind(1)
    starts = starts_of(places[0], grid[not by_rows])
    return CompressedTensor(starts, places[1].contiguous(), blocks[tuple(places)], x.shape, layout)


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False, out: Tensor | None = None
) -> Tensor:
    """Returns the first position of each of `size` rows for sorted row indices, as packages on
    PyTorch ask for it."""
    starts = starts_of(input, size).to(BY_NAME["int32" if out_int32 else "int64"])
    return starts if out is None else out.copy_(starts)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor,
    col_indices: Tensor,
    *,
    out_int32: bool = False,
    transpose: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the pairs of row and column indices, or of column and row indices."""
    rows = ops.arange(crow_indices.numel() - 1, device=crow_indices.device)
    rows = ops.repeat_interleave(rows, (crow_indices[1:] - crow_indices[:-1]).to(int64))
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    pairs = ops.stack([x.to(BY_NAME["int32" if out_int32 else "int64"]) for x in pair])
    return pairs if out is None else out.copy_(pairs)
