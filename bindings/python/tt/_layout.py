"""Layouts, and Tensor attributes for layouts and devices that tt lacks."""
from __future__ import annotations

from math import prod
from typing import Any, Callable

import tt

from . import errors
from ._hints import Self
from ._types import Named
from ._types import device as _device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._tensor import Tensor

_Function = Callable[..., Any]
_Layout = Any


class layout(Named):
    """The storage layout of a tensor's elements: strided or sparse."""

    __module__ = "tt"
    __slots__ = ("name",)


strided = layout("strided")
jagged = layout("jagged")  # of nested tensors
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")


class qscheme(Named):
    """The way in which observers of tt.ao.quantization choose scales: one or one per channel, with
    a zero point (affine) or around 0 (symmetric)."""

    __module__ = "tt"
    __slots__ = ("name",)


per_channel_affine = qscheme("per_channel_affine")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_tensor_affine = qscheme("per_tensor_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")


def dense_error(method: str, layout: str = "sparse_coo") -> RuntimeError:
    """Returns the exception of a method of sparse tensors."""
    conversion = "to_sparse_csr" if layout == "sparse_csr" else "to_sparse"
    return RuntimeError(
        f"{method}: self is dense: its layout must be {layout}, which {conversion}() gives"
    )


class TensorLayout:
    """A base of Tensor: attributes that are equal for all tensors, and shared memory."""

    layout: _Layout = strided
    is_sparse: bool = False
    is_sparse_csr: bool = False
    is_quantized: bool = False
    is_nested: bool = False
    is_mkldnn: bool = False
    is_xpu: bool = False
    is_mps: bool = False
    is_ipu: bool = False
    is_xla: bool = False
    is_maia: bool = False
    is_vulkan: bool = False
    names: Any = property(lambda self: (None,) * self.ndim, doc="None for each dimension.")

    def dequantize(self: Any) -> Any:
        """Returns the tensor in float32, as a quantised tensor would."""
        return self.to(tt.float32)

    def is_inference(self) -> bool:
        """Returns False: inference_mode is no_grad."""
        return False

    def is_distributed(self) -> bool:
        """Returns False."""
        return False

    def has_names(self) -> bool:
        """Returns False: dimensions have no names."""
        return False

    def histogram(
        self: Any, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False
    ) -> Any:
        """Calls tt.histogram."""
        from ._samples import histogram

        return histogram(self, bins, range=range, weight=weight, density=density)

    def polygamma_(self: Any, n: int) -> Any:
        """Replaces each element by its polygamma function of order n. Returns self."""
        return self.copy_(self.polygamma(n))

    @property
    def retains_grad(self: Any) -> bool:
        """Whether retain_grad() was called on a non-leaf tensor."""
        return self._retains_grad and not self.is_leaf

    @property
    def output_nr(self) -> int:
        """0: tt does not number the results of an operator."""
        return 0

    def is_pinned(self, device: Any = None) -> bool:
        """Returns whether the tensor is in pinned memory, which CUDA devices copy
        asynchronously."""
        from ._lib import quick

        return bool(quick.tt_tensor_is_pinned(self))

    def pin_memory(self, device: Any = None) -> Self:
        """Returns a copy in pinned memory; self if it is pinned or there is no CUDA device."""
        from . import cuda
        from ._convert import place
        from ._tensor import tensor_result

        if not cuda.is_available() or self.is_pinned():
            return self
        return tensor_result("tt_pin_memory", self, place(device))

    def record_stream(self, stream: Any) -> None:
        """Does nothing: memory is reused only after the streams that use it."""

    # ---- shared memory ----

    def is_shared(self: Any) -> bool:
        """Returns whether the storage is in shared memory."""
        from ._shared_memory import block_of

        return block_of(self) is not None

    def share_memory_(self: Any) -> Tensor:
        """Moves the storage into shared memory. Returns self.

        self must be a leaf on the CPU. Existing views keep the former memory.
        """
        from ._shared_memory import share

        share(self)
        return self

    # ---- Python functions on elements ----

    def apply_(self: Any, callable: _Function) -> Tensor:
        """Replaces each element x by callable(x). Slow. Returns self."""
        if not self.is_cpu or self.requires_grad:
            raise TypeError("apply_: self must be on the CPU and require no gradient")
        return mapped(self, callable, self)

    def map2_(self: Any, x: Any, y: Any, callable: _Function) -> Tensor:
        """Replaces each element a by callable(a, b, c) with b from x and c from y. Slow. Returns
        self."""
        if not self.is_cpu or any(t.requires_grad for t in (self, x, y)):
            raise TypeError("map2_: the tensors must be on the CPU and require no gradient")
        return mapped(self, callable, self, x.expand(self.shape), y.expand(self.shape))

    def map_(self: Any, tensor: Any, callable: _Function) -> Tensor:
        """Replaces each element x by callable(x, y) with y from tensor. Slow. Returns self."""
        if not self.is_cpu or self.requires_grad or tensor.requires_grad:
            raise TypeError("map_: the tensors must be on the CPU and require no gradient")
        return mapped(self, callable, self, tensor.expand(self.shape))

    # ---- other memory ----

    def set_(
        self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
    ) -> Tensor:
        """Gives self the memory, shape and strides of source; without source, makes it empty.
        Returns self.

        source: a tensor or a storage, whose elements are those of self's dtype.
        storage_offset, size, stride: the place of self in the memory of source.
        """
        from .storage import Storage

        if source is None:
            source = self.new_empty(0)
        if isinstance(source, Storage):
            source = source.elements
            if source.dtype is not self.dtype:
                source = source.view(self.dtype)
            source = source[storage_offset:] if size is None else source
        if size is not None:
            size = tuple(size)
            if stride is None:
                stride = [prod(size[i + 1 :]) for i in range(len(size))]
            source = source.as_strided(size, stride, storage_offset)
        if source.dtype is not self.dtype:
            raise errors.DtypeError(
                f"set_: source is {source.dtype}: must be of self's dtype, {self.dtype}"
            )
        self._set_data(source)
        return self

    def resize_(self: Any, *sizes: Any, memory_format: Any = None) -> Tensor:
        """Changes the shape of self, in row-major order, keeping elements that fit. Returns self.

        Memory that is too small is replaced; views of self keep the former memory.
        """
        size = tuple(sizes[0]) if len(sizes) == 1 and hasattr(sizes[0], "__len__") else sizes
        if self.requires_grad:
            raise errors.AutogradError("resize_: self requires a gradient: detach() it first")
        if tuple(self.shape) == size:
            return self
        n = prod(size)
        offset = self.storage_offset()
        available = self._storage_bytes() // self.itemsize
        if offset + n > available:
            grown = self.new_empty(offset + n)
            grown[:available].copy_(self.as_strided((available,), (1,), 0))
            source = grown[offset:].view(size)
        else:
            strides = [1] * len(size)
            for i in range(len(size) - 2, -1, -1):
                strides[i] = strides[i + 1] * max(size[i + 1], 1)
            source = self.as_strided(size, strides, offset)
        self._set_data(source)
        return self

    def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Tensor:
        """Resizes self to the shape of another tensor: see resize_. Returns self."""
        return self.resize_(the_template.shape)

    def new(self: Any, *args: Any, device: _device | str | None = None) -> Tensor:
        """Returns an uninitialised tensor of these sizes, or one with the values of a sequence,
        of self's dtype and device."""
        if len(args) == 1 and not isinstance(args[0], int):
            if isinstance(args[0], type(self)):
                return args[0].detach()
            if type(args[0]).__name__ != "Size":
                return self.new_tensor(args[0], device=device)
            args = tuple(args[0])
        return self.new_empty(args or (0,), device=device)

    def sparse_dim(self) -> int:
        """Returns 0, the number of sparse dimensions of a dense tensor."""
        return 0

    def dense_dim(self: Any) -> int:
        """Returns the number of dimensions of a dense tensor."""
        return self.ndim

    def coalesce(self) -> tt.sparse.SparseTensor:
        """Raises RuntimeError: only sparse tensors have positions."""
        raise dense_error("coalesce")

    def is_coalesced(self) -> bool:
        """Raises RuntimeError: only sparse tensors have positions."""
        raise dense_error("is_coalesced")

    def indices(self) -> Tensor:
        """Raises RuntimeError: only sparse tensors have indices."""
        raise dense_error("indices")

    def values(self) -> Tensor:
        """Raises RuntimeError: only sparse tensors have values at positions."""
        raise dense_error("values")

    def crow_indices(self) -> Tensor:
        """Raises RuntimeError: only sparse matrices in compressed rows have these."""
        raise dense_error("crow_indices", "sparse_csr")

    def col_indices(self) -> Tensor:
        """Raises RuntimeError: only sparse matrices in compressed rows have these."""
        raise dense_error("col_indices", "sparse_csr")

    def to_sparse(
        self: Any,
        sparse_dim: int | None = None,
        *,
        layout: _Layout | None = None,
        blocksize: Any = None,
    ) -> tt.sparse.SparseTensor:
        """Returns self as a sparse tensor: see tt.sparse."""
        from . import sparse

        return sparse.to_sparse(self, sparse_dim, layout, blocksize)

    def sparse_mask(self: Any, mask: tt.sparse.SparseTensor) -> tt.sparse.SparseTensor:
        """Returns the elements at the places of a sparse tensor of the same shape."""
        from ._sparse_functions import sparse_mask

        return sparse_mask(self, mask)

    def to_sparse_coo(self: Any) -> tt.sparse.SparseTensor:
        """Returns self as a sparse tensor of coordinates: see tt.sparse."""
        return self.to_sparse()

    def to_sparse_csr(self: Any) -> tt.sparse.SparseTensor:
        """Returns a sparse matrix in compressed rows: see tt.sparse."""
        return self.to_sparse(layout=sparse_csr)

    def to_sparse_csc(self: Any) -> tt.sparse.SparseTensor:
        """Returns a sparse matrix in compressed columns: see tt.sparse_compressed_tensor."""
        return self.to_sparse(layout=sparse_csc)

    def to_sparse_bsr(self: Any, blocksize: Any) -> tt.sparse.SparseTensor:
        """Returns a sparse matrix of blocks in compressed rows: see tt.sparse_compressed_tensor."""
        return self.to_sparse(layout=sparse_bsr, blocksize=blocksize)

    def to_sparse_bsc(self: Any, blocksize: Any) -> tt.sparse.SparseTensor:
        """Returns a sparse matrix of blocks in compressed columns."""
        return self.to_sparse(layout=sparse_bsc, blocksize=blocksize)

    def to_dense(self) -> Self:
        """Returns self, which is dense."""
        return self


def mapped(target: Any, function: _Function, *sources: Any) -> Any:
    """Writes function(x, …) of the sources' elements into target."""
    columns = [source.reshape(-1).tolist() for source in sources]
    values = [function(*row) for row in zip(*columns)]
    target.copy_(target.new_tensor(values).view(target.shape))
    return target


class SparseGrads:
    """seen: whether a tensor may have had a sparse gradient."""

    seen = False
