"""Tensor: attributes, gradients, conversions, indexing and Python's protocols.

Tensor's bases are generated: methods (_ops/methods.py), Python's operators (_arithmetic.py) and
attributes that C provides (_tensor_facts.py).
"""
from __future__ import annotations

import copy
import weakref
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from builtins import type as _type
from ctypes import byref, c_char, c_int32, c_int64, c_void_p, create_string_buffer
from struct import Struct
from types import ModuleType
from typing import Any, Callable, Iterator, Sequence, TypeVar, overload

import tt

from . import _arithmetic, _interception, _layout, _memory, _tensor_facts
from . import _ops as ops
from . import errors
from ._arithmetic import Arithmetic
from ._tensor_facts import TensorFacts, TensorHandle
from ._hints import Array, Self
from ._index import INT_MAX, INT_MIN, packed_index
from ._interception import COMMON, PLAIN, adopt, default_torch_function
from ._interception import intercepted, retried, switch
from ._layout import SparseGrads, TensorLayout
from ._lib import call, fail, filled, lib, local, packed_address, quick, result
from ._memory import to_list, to_numpy
from ._class_name import class_name
from ._ops import methods
from ._positions import note_read
from ._positions import state as positions
from ._types import BY_NAME, DTYPES, MEMORY_FORMATS, Defaults, Size, contiguous_format, device
from ._types import dtype
from ._types import preserve_format, size_of
from ._types import device as DEVICE_CLASS
from ._types import float32 as FLOAT32
from ._types import device as _device
from ._types import dtype as _dtype
from ._types import memory_format as _memory_format

TYPE_CHECKING = False
SomeTensor = TypeVar("SomeTensor", bound="Tensor")

SCALAR = Struct("iiqdd")  # tt_scalar: kind, pad, i, re, im
tensor_select = lib.tt_select
tensor_index_get, tensor_index_set = lib.tt_index_get, lib.tt_index_set
new_scalar = lib.tt_scalar_tensor
CPU_DEVICE = device("cpu")
CPU = CPU_DEVICE.code
DTYPE_CLASS = dtype
SMALL = tuple(map(c_int64, range(65)))
FIRST_DIM = SMALL[0]
TYPE_NAMES = {kind.shown + "Tensor": kind for kind in BY_NAME.values()}


# Address of a leaf that requires a gradient -> its object, which graphs find again
leaves: weakref.WeakValueDictionary[int | None, Tensor] = weakref.WeakValueDictionary()


exchanged = [0]  # how often a tensor that is watched has become another one
on_exchange: list[Callable[[], None]] = []  # called after each tensor that has become another one


def known_leaf(leaf: Tensor) -> Tensor:
    """Returns the object that a leaf has had; if it is gone, the one given."""
    known = leaves.get(leaf._address)
    if known is not None and known._address == leaf._address:  # no other data since
        return known
    leaves[leaf._address] = leaf
    return leaf


class Replaced:
    """count: how many times the data of a tensor, and perhaps its shape, was replaced."""

    count = 0


def number(kind: int, i: int, re: float, im: float) -> Any:
    """Returns a tt_scalar as a Python number."""
    return (None, bool(i), i, re, complex(re, im))[kind]


LEFT_OUT: Any = object()  # the default of an argument for which None is a value
OF_GRAD = ("_kept_grad", "_sparse_grad", "_metadata_of_grad")  # attributes that tt sets


class Tensor(Arithmetic, TensorLayout):
    """An n-dimensional array with automatic differentiation.

    Tensor(2, 3) and Tensor(x.shape) are uninitialised, Tensor(data) has the values of data, all of
    the default dtype. Tensor(tensor) is an alias, for subclasses.

    Functions, methods and operators on a subclass return the subclass, unless it is defined with
    plain_results=True, as Parameter is.
    """

    __module__ = "tt"  # print(type(x)) shows it
    _keeps_class = False
    _retains_grad = False
    _kept_grad: Any  # a weakref.ref, or None
    _sparse_grad: Any = None  # a SparseTensor: see _sparse_grad.py
    __array_priority__ = 1000  # NumPy leaves mixed operations to __radd__ and the like

    def __new__(cls, *data: Any, device: _device | str | None = None) -> Self:
        if len(data) == 1 and isinstance(data[0], Tensor):
            return data[0].detach().to(device=device).as_subclass(cls)
        if len(data) == 1 and isinstance(data[0], Size):
            data = tuple(data[0])
        if all(type(x) is int for x in data):
            return ops.empty(data or (0,), device=device).as_subclass(cls)
        if len(data) != 1 or isinstance(data[0], (bool, float, complex)):
            raise TypeError("Tensor() takes sizes or one sequence; tt.tensor() takes a number")
        from ._create import tensor

        return tensor(data[0], dtype=Defaults.float, device=device).as_subclass(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __init_subclass__(cls, plain_results: _bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if Tensor in cls.__bases__ and not plain_results:
            cls._keeps_class = True
        method: Any = cls.__torch_function__
        if getattr(method, "__func__", method) is not default_torch_function:
            adopt(cls)

    __torch_function__: Any = classmethod(default_torch_function)

    def as_subclass(self, cls: _type[SomeTensor]) -> SomeTensor:
        """Returns the same tensor as an object of another tensor class."""
        alias = object.__new__(cls)
        alias._as_parameter_ = self._as_parameter_
        return alias

    @staticmethod
    def _make_subclass(
        cls: _type[SomeTensor], data: Tensor, require_grad: _bool = False
    ) -> SomeTensor:
        """Returns a leaf of a class over the memory of data, as PyTorch's subclasses make it."""
        return data.detach().as_subclass(cls).requires_grad_(require_grad)

    # ---- attributes ----

    def view(self, *args: Any, size: Any = None, dtype: _dtype | None = None) -> Tensor:
        """Returns a view of self with another shape, or its bytes as another dtype.

        view(2, -1): like reshape, but raises where reshape copies; one size may be -1.
        view(tt.int32): the last size and the strides change if the dtypes differ in size. The
        result has no history.
        """
        if dtype is None and len(args) == 1 and isinstance(args[0], DTYPE_CLASS):
            dtype = args[0]
        if dtype is None:
            return ops.view(self, *args, size=size)
        from ._create import viewed_as

        return viewed_as(self, dtype)

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        handle: Any = self._as_parameter_
        count = Replaced.count
        try:
            if handle.seen == count:
                return handle.sizes
        except AttributeError:  # nobody has asked before
            pass
        handle.sizes = sizes = size_of(quick.tt_tensor_shape(self)[: quick.tt_tensor_ndim(self)])
        handle.seen = count
        return sizes

    def _set_data(self, source: Tensor) -> None:
        TensorFacts._set_data(self, source)
        Replaced.count += 1

    @property
    def nbytes(self) -> _int:
        """Number of bytes of all elements."""
        return self.numel() * self.itemsize

    def untyped_storage(self) -> tt.UntypedStorage:
        """Returns the memory that self and its views share, as bytes."""
        from .storage import untyped_storage

        return untyped_storage(self)

    def storage(self) -> tt.TypedStorage:
        """Returns the memory that self and its views share, as elements."""
        from .storage import TypedStorage, whole

        return TypedStorage(whole(self))

    def const_data_ptr(self) -> _int:
        """Returns data_ptr(), which may not be written through."""
        return self.data_ptr()

    @property
    def name(self) -> None:
        """None: tensors have no names."""
        return None

    def dim_order(self) -> tuple[_int, ...]:
        """Returns the dimensions from the outermost in memory to the innermost."""
        strides = self.stride()
        return tuple(sorted(range(self.ndim), key=lambda d: (-strides[d], d)))

    def is_contiguous(self, memory_format: _memory_format = contiguous_format) -> _bool:
        """Returns whether the elements are in the order of memory_format, without gaps."""
        if not memory_format.ndim:
            return self._is_contiguous()
        if self.ndim != memory_format.ndim:
            return False
        expected = 1
        for d in (1, *reversed(range(2, self.ndim)), 0):
            if self.shape[d] != 1:
                if self.stride(d) != expected:
                    return False
                expected *= self.shape[d]
        return True

    def is_same_size(self, other: Tensor) -> _bool:
        """Returns whether other has the same shape."""
        return self.shape == other.shape

    def get_device(self) -> _int:
        """Returns the index of the device; -1 on the CPU."""
        return -1 if self.device.index is None else self.device.index

    # ---- gradients ----

    def requires_grad_(self, requires_grad: _bool = True) -> Self:
        """Sets whether a leaf requires gradients: operators on it are then recorded."""
        super().requires_grad_(requires_grad)
        if requires_grad:
            leaves[self._address] = self
        return self

    if TYPE_CHECKING:
        requires_grad: _bool
    else:
        requires_grad = TensorFacts.requires_grad.setter(requires_grad_)

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient or None. It is the same object while a reference to it
        exists."""
        grad = tensor_result("tt_tensor_grad", self)
        if self._sparse_grad is not None:
            if grad is None:
                return self._sparse_grad
            grad = self._sparse_grad + grad  # one that came by the graph in the meantime
            self.grad = grad
        if grad is None:
            return None
        reference: Any = getattr(self, "_kept_grad", None)
        kept = reference and reference()
        if kept is not None and kept._address == grad._address:
            return kept
        self._kept_grad = weakref.ref(grad)
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and getattr(value, "is_sparse", False) and value.shape == self.shape:
            self._set_grad()
            self._sparse_grad = value
            SparseGrads.seen = True
            return
        self._set_grad(value)
        self._sparse_grad = None
        self._kept_grad = None if value is None else weakref.ref(value)

    @grad.deleter
    def grad(self) -> None:
        self._set_grad()
        self._sparse_grad = None

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is not a leaf, too."""
        super().retain_grad()
        self._retains_grad = True

    def detach_(self) -> Tensor:
        """Removes the history of self. Returns self."""
        return self.requires_grad_(False) if self.is_leaf else self._become(self.detach())

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: _bool | None = None,
        create_graph: _bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Computes the gradients of the leaves of self and adds them to their .grad.

        gradient: the gradient of self, in its shape; None: 1, for a tensor of one element.
        retain_graph: keeps the graph for another backward; None: the value of create_graph.
        create_graph: records the computation of the gradients, for higher derivatives.
        inputs: the tensors that receive gradients; None: all leaves.
        Raises AutogradError if self requires no gradient or the graph has been released.
        """
        if inputs is None and not SparseGrads.seen:
            from ._handles import backward

            backward(self, gradient, retain_graph, create_graph)
        else:
            from .autograd import backward as backward_to

            backward_to(self, gradient, retain_graph, create_graph, inputs=inputs)

    @property
    def grad_fn(self) -> tt.autograd.graph.Node | None:
        """The recorded operator that computed self; None for a leaf."""
        from .autograd.graph import grad_fn_of

        return grad_fn_of(self)

    @property
    def _base(self) -> Tensor | None:
        """The tensor of which self is a view; None if it is no view."""
        base: Tensor | None = tensor_result("tt_tensor_base", self)
        known = base is not None and base.is_leaf and base.requires_grad
        return known_leaf(base) if base is not None and known else base

    @property
    def data(self) -> Tensor:
        """The same memory without history. What is written through it does not invalidate what
        graphs have saved of self. Assigning replaces memory, shape and dtype of self; those of a
        result of an operator keep shape and dtype."""
        if switch.users:
            found = intercepted(Tensor.detach, {"self": self})
            if found is not PLAIN:
                return found
        if positions.noted is not None and positions.noted.as_tensor:
            return self.detach()  # whose writes are seen
        data: Tensor = tensor_result("tt_tensor_variable_data", self)
        return data.as_subclass(type(self)) if keeps(self) else data

    @data.setter
    def data(self, source: Tensor) -> None:
        self._set_data(source)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Calls hook(grad) with the gradient of self. A tensor that hook returns replaces it.

        handle.remove() unregisters the hook.
        """
        from . import _handles

        return _handles.register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> HookHandle:
        """Calls hook(self) after a gradient was added to .grad. self must be a leaf."""
        from . import _handles

        if not callable(hook):
            raise TypeError(f"a hook must be callable, not {type(hook).__name__}")
        alive = weakref.ref(self)

        def with_object(leaf: Tensor) -> None:
            known = alive()
            hook(leaf if known is None else known)

        return _handles.register_post_accumulate_grad_hook(self, with_object)

    # ---- conversions ----

    def to(
        self,
        device: _device | str | int | _dtype | Tensor | None = None,
        dtype: _dtype | None = None,
        non_blocking: _bool = False,
        copy: _bool = False,
        *,
        memory_format: _memory_format = preserve_format,
        other: Tensor | None = None,
    ) -> Tensor:
        """Converts or moves: to(dtype), to(device), to(device, dtype) or to(other).

        device: also a dtype, or a tensor whose dtype and device the result gets; non_blocking and
            copy may follow it without a dtype between
        non_blocking: ignored
        copy: returns a copy even if nothing changes; by default the result is self then
        memory_format: that of the result
        other: a tensor whose dtype and device the result gets
        """
        plain = dtype is None and memory_format is preserve_format and other is None
        if plain and not copy and self._is_already(device):
            return self
        dtype, device, copy, memory_format = to_arguments(
            device, dtype, non_blocking, copy, memory_format=memory_format, other=other
        )
        if memory_format is contiguous_format and not copy and self._keeps(dtype, device):
            return self
        return ops.to(self, dtype=dtype, device=device, copy=copy, memory_format=memory_format)

    def _keeps(self, dtype: Any, device: Any) -> _bool:
        """Returns whether to(device, dtype, memory_format=contiguous_format) returns self. As in
        PyTorch, any format but channels last counts as contiguous."""
        if dtype not in (None, self.dtype) or device is not None and self.device != device:
            return False
        names = {4: "channels_last", 5: "channels_last_3d"}
        return self.ndim not in names or not self.is_contiguous(MEMORY_FORMATS[names[self.ndim]])

    def _is_already(self, target: Any) -> _bool:
        """Returns True if a quick check shows that to(target) changes nothing."""
        kind = type(target)
        if kind is dtype:
            return DTYPES[quick.tt_tensor_dtype(self)] is target
        if kind is device:
            target = target.type
        return target == "cpu" and quick.tt_tensor_device_type(self) == CPU

    def cuda(
        self,
        device: _device | str | int | None = None,
        non_blocking: _bool = False,
        memory_format: _memory_format = preserve_format,
    ) -> Tensor:
        """Moves to a CUDA device, which may be given by its index; None: the current one."""
        target = DEVICE_CLASS("cuda", device) if device is None or type(device) is int else device
        return self.to(target, non_blocking=non_blocking, memory_format=memory_format)

    def copy_(self, src: Tensor | complex, non_blocking: _bool = False) -> Tensor:
        """Copies the elements of src into self. src is broadcast to the shape of self and converted
        to its dtype and device.

        non_blocking: does not wait for a copy between pinned memory and a CUDA device; values that
        arrive in pinned memory are there once the current stream is synchronized
        """
        if non_blocking and isinstance(src, Tensor) and (self.is_pinned() or src.is_pinned()):
            if not (self.requires_grad or src.requires_grad):
                call("tt_copy_non_blocking", self, src)
                return self
        if not isinstance(src, Tensor) and is_number(src):
            src = tt.tensor(src, device=self.device)
        return ops.copy_(self, src)

    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Replaces each element by 1 with probability p, else 0. Returns self.

        p: a number, or a tensor that is broadcast to the shape of self
        """
        if not isinstance(p, Tensor):
            return ops.bernoulli_(self, p, generator=generator)
        with tt.no_grad():
            drawn = ops.bernoulli(p.expand(self.shape), generator=generator)
        return self.copy_(drawn)

    def random_(
        self, from_: Any = None, to: Any = LEFT_OUT, *, generator: Any = None, **kwargs: Any
    ) -> Tensor:
        """Fills self with random integers: random_(to) with those of [0, to), random_(from, to)
        with those of [from, to), random_(from, None) with those from `from` on that the dtype
        represents exactly. Returns self."""
        if to is None and from_ is not None:
            kwargs["from"], from_ = from_, None
        to = None if to is LEFT_OUT else to
        return ops.random_(self, from_, to, generator=generator, **kwargs)

    def contiguous(self, memory_format: _memory_format = contiguous_format) -> Tensor:
        """Returns self if its memory has this format, else a copy in this format."""
        if memory_format is contiguous_format:
            return ops.contiguous(self)
        if self.is_contiguous(memory_format):
            return self
        return ops.clone(self, memory_format=memory_format)

    @overload
    def type(self) -> str:
        ...

    @overload
    def type(self, dtype: _dtype | str | _type, non_blocking: _bool = False) -> Tensor:
        ...

    def type(
        self, dtype: _dtype | str | _type | None = None, non_blocking: _bool = False
    ) -> Tensor | str:
        """Converts to a dtype. Without one, returns a name such as "tt.FloatTensor".

        dtype: a dtype; a class such as tt.cuda.FloatTensor or its name, which also move; or
        tt.Tensor, which means the default dtype.
        """
        if dtype is Tensor:
            return self.to(Defaults.float)
        if isinstance(dtype, str):
            return self.to(*named_type(dtype))
        if dtype is not None:
            given: Any = dtype
            if hasattr(given, "device_type"):  # tt.FloatTensor, tt.cuda.FloatTensor
                return self.to(given.device_type, given.dtype)
            return self.to(getattr(given, "dtype", given))
        device = "" if self.is_cpu else self.device.type + "."
        return f"{self.dtype.library}.{device}{self.dtype.shown}Tensor"

    def type_as(self, other: Tensor) -> Tensor:
        """Converts to the dtype of other."""
        return self.to(other.dtype)

    @property
    def T(self) -> Tensor:
        """A view with the dimensions in reverse order."""
        return self.permute(tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions exchanged; self if it is 0-dim."""
        return self.transpose(-2, -1) if self.ndim else self

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
        if self.ndim not in (0, 2):
            raise errors.ShapeError(f"H: self has {self.ndim} dims: must be a matrix, use mH")
        return self.adjoint() if self.ndim else self.conj()

    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of the matrices in the last two dimensions; the conjugate of a
        0-dim tensor."""
        return self.adjoint() if self.ndim else self.conj()

    @property
    def real(self) -> Tensor:
        """The real parts as a view; self if it is real."""
        return ops.real(self)

    @real.setter
    def real(self, values: Any) -> None:
        self.real.copy_(values)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts of a complex tensor as a view."""
        return ops.imag(self)

    @imag.setter
    def imag(self, values: Any) -> None:
        self.imag.copy_(values)

    def is_conj(self) -> _bool:
        """Returns False: conj() copies."""
        return False

    def is_neg(self) -> _bool:
        """Returns False: no tensor is a view of negated elements."""
        return False

    def is_nonzero(self) -> _bool:
        """Returns whether the single element is not 0. Raises RuntimeError for other numbers of
        elements."""
        if self.numel() != 1:
            raise errors.ShapeError(
                f"is_nonzero: self has {self.numel()} elements: must have exactly one"
            )
        return bool(self.item())

    def is_set_to(self, tensor: Tensor) -> _bool:
        """Returns whether both have the same storage, shape, strides and offset."""
        return (
            self._storage_data() == tensor._storage_data()
            and self.storage_offset() == tensor.storage_offset()
            and (self.shape, self._strides) == (tensor.shape, tensor._strides)
        )

    def lu(self, pivot: _bool = True, get_infos: _bool = False) -> tuple[Tensor, ...]:
        """Returns LU, pivots and, with get_infos, infos: see tt.linalg.lu_factor_ex."""
        from ._torch_numeric import lu

        factors: tuple[Tensor, ...] = lu(self, pivot, get_infos)
        return factors

    def ormqr(
        self, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False
    ) -> Tensor:
        """Multiplies input3 by the orthogonal matrix of geqrf's results self and input2."""
        from ._torch_numeric import ormqr

        product: Tensor = ormqr(self, input2, input3, left, transpose)
        return product

    def unsafe_split_with_sizes(
        self, split_sizes: Sequence[_int], dim: _int = 0
    ) -> tuple[Tensor, ...]:
        """Same as split_with_sizes."""
        return self.split_with_sizes(split_sizes, dim)

    def chalf(self, memory_format: _memory_format = preserve_format) -> Tensor:
        """Raises an error: no tensor is complex32."""
        from ._absent import ABSENT_DTYPES

        return self.to(ABSENT_DTYPES["complex32"], memory_format=memory_format)

    def fill_(self, value: complex | Tensor) -> Tensor:
        """Sets every element to value, a number or a 0-dim tensor, whose gradient is the sum of
        self's. Returns self."""
        if not isinstance(value, Tensor):
            return super().fill_(value)
        if value.ndim:
            raise errors.ShapeError(
                f"fill_: value is {list(value.shape)}: must be a number or 0-dim"
            )
        return self.copy_(value)

    def fill_diagonal_(self, fill_value: complex, wrap: _bool = False) -> Tensor:
        """Writes a number to the main diagonal. Returns self.

        More than two dimensions must all have the same size. wrap: restarts the diagonal of a tall
        matrix after each block of columns + 1 rows.
        """
        if self.ndim < 2:
            raise errors.ShapeError(
                f"fill_diagonal_: self is {list(self.shape)}: must have at least 2 dimensions"
            )
        if self.ndim > 2 and len(set(self.shape)) > 1:
            raise errors.ShapeError(
                f"fill_diagonal_: self is {list(self.shape)}: all sizes must be equal"
            )
        rows, columns = self.shape[0], self.shape[1]
        starts = range(0, rows, columns + 1) if wrap and self.ndim == 2 and columns else (0,)
        for start in starts:
            part = self[start : start + columns]
            n = min(part.shape)
            part.as_strided((n,), (sum(part.stride()),), part.storage_offset()).fill_(fill_value)
        return self

    def new_tensor(
        self,
        data: Any,
        *,
        dtype: _dtype | None = None,
        device: _device | str | None = None,
        requires_grad: _bool = False,
    ) -> Tensor:
        """Returns tt.tensor(data), by default with the dtype and the device of self."""
        from ._create import tensor

        result = tensor(
            data,
            dtype=dtype or self.dtype,
            device=device or self.device,
            requires_grad=requires_grad,
        )
        return result.as_subclass(type(self)) if self._keeps_class else result

    def numpy(self, *, force: _bool = False) -> Array:
        """Returns a NumPy array over the same memory.

        Raises AutogradError if self requires a gradient, DeviceError if it is not on the CPU,
        TypeError for bfloat16. force: converts self.detach().cpu(), which may copy.
        """
        return to_numpy(self, force)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[_int, _int] | None = None,
        dl_device: tuple[_int, _int] | None = None,
        copy: _bool | None = None,
    ) -> Any:
        """Returns a DLPack capsule over the same memory. Raises BufferError if that is
        impossible.

        stream: of a CUDA tensor, the consumer's stream: the address of a cudaStream_t, 1 or None
        for the default stream, 2 for the thread's own. It waits for what tt has computed so far; -1
        makes nothing wait.
        """
        from ._dlpack import to_dlpack

        return to_dlpack(self, stream, max_version, dl_device, copy)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Returns tt.array_api, the functions of Python's array API standard."""
        from . import array_api

        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"array API: api_version is {api_version!r}: tt has 2024.12")
        return array_api

    def to_device(self, device: _device | str, /, *, stream: Any = None) -> Tensor:
        """Returns self on a device."""
        return self.to(device=device)

    def __dlpack_device__(self) -> tuple[_int, _int]:
        """Returns (device type, index) in DLPack's numbers."""
        from ._dlpack import dlpack_device

        return dlpack_device(self)

    # ---- values ----

    def equal(self, other: Tensor) -> _bool:
        """Returns whether other has the same shape and equal elements. nan equals nothing."""
        from ._comparison import equal

        return equal(self, other)

    def allclose(
        self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> _bool:
        """Returns whether all elements satisfy |self - other| <= atol + rtol |other|, or are
        equal."""
        from ._comparison import allclose

        return allclose(self, other, rtol, atol, equal_nan)

    def item(self) -> Any:
        """Returns the value of a tensor of one element as a Python number."""
        scalar = create_string_buffer(32)
        call("tt_item", self, scalar)
        kind, _, i, re, im = SCALAR.unpack(scalar)
        if i < 0 and self.dtype.name == "uint64":  # the bits as an int64
            i += 1 << 64
        return number(kind, i, re, im)

    def _number(self, kind: Callable[[Any], Any]) -> Any:
        """Returns the value of a tensor of one element as an int, a float or a complex."""
        value = self.item()
        if isinstance(value, complex) and kind is not complex:
            if value.imag:
                raise errors.InvalidArgumentError(
                    f"{kind.__name__}() of a tensor: the value is {value}: "
                    "its imaginary part must be 0"
                )
            value = value.real
        return kind(value)

    def tolist(self) -> Any:
        """Returns the values as nested lists, or as a number if self is 0-dim."""
        items = to_list(self)
        if items is not None:
            return items
        shape, kind = self.shape, self.dtype
        if not shape:
            return self.item()
        if not shape.numel() or kind.is_complex and len(shape) > 1:
            return [x.tolist() for x in self]
        if kind.itemsize == 2 and kind.is_floating_point:
            return self.to(FLOAT32).tolist()
        values = memoryview(self._bytes())
        if kind.is_complex:
            parts = values.cast(kind.read)
            return list(map(complex, parts[::2], parts[1::2]))
        return values.cast(kind.read, shape).tolist()

    def _bytes(self) -> bytes:
        """Returns the elements in row-major order."""
        n = self.nbytes
        buffer = create_string_buffer(n or 1)
        call("tt_tensor_read", self, buffer, c_int64(n))
        return buffer.raw[:n]

    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> Array:
        array = self.numpy()
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ValueError(f"a copy is needed to convert {self.dtype} to {dtype}")
        return array.astype(dtype or array.dtype, copy=bool(copy))

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: _bool = False
    ) -> Tensor:
        """Converts the results of NumPy's functions on tensors to tensors."""
        from ._create import as_tensor

        return as_tensor(array)

    def __bool__(self) -> _bool:
        n = self.numel()
        if n != 1:
            values = "more than one value" if n else "no values"
            raise errors.InvalidArgumentError(f"Boolean value of Tensor with {values} is ambiguous")
        return bool(self.item())

    def __index__(self) -> _int:
        if self.numel() != 1 or self.dtype.kind not in "ib":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> _int:
        if not self.ndim:
            raise TypeError("len() of a 0-dim tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-dim tensor")
        return iter(ops.unbind(self, 0))

    def __reversed__(self) -> Tensor:
        return ops.flip(self, 0) if self.ndim else self

    def __contains__(self, item: Tensor | complex) -> _bool:
        if not (isinstance(item, Tensor) or hasattr(item, "__abs__")):
            raise RuntimeError(
                f"Tensor.__contains__ takes a Tensor or a number, not {class_name(item)}"
            )
        return bool((self == item).any())

    def __pos__(self) -> Tensor:
        return self

    def __repr__(self) -> str:
        if positions.noted is not None and positions.noted.prints:
            note_read()
        text = filled(c_char, "tt_tensor_print", self, cap=4096).decode()
        operator = text.rfind("grad_fn=<")
        if operator >= 0 and text.endswith(">)"):
            text = f"{text[:operator]}grad_fn=<{type(self.grad_fn).__name__}>)"
        return text.replace("dtype=", f"dtype={FLOAT32.library}.")

    def __format__(self, spec: str) -> str:
        if self.ndim or self.is_meta or type(self) is not Tensor:
            return object.__format__(self, spec)
        return self.item().__format__(spec)

    __hash__ = object.__hash__  # by identity: __eq__ compares elements

    # ---- copies ----

    def _attributes(self) -> dict[str, Any]:
        """Returns the attributes that users have set."""
        return {name: value for name, value in self.__dict__.items() if name not in OF_GRAD}

    def __reduce__(self) -> Any:
        data = self.detach().cpu()._bytes()
        state = (type(self), data, self.dtype.name, tuple(self.shape), self.requires_grad)
        return rebuild, state, self._attributes()

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)

    def __copy__(self) -> Self:
        """Returns another object over the same memory."""
        alias = self.detach().as_subclass(type(self)).requires_grad_(self.requires_grad)
        alias.__dict__.update(self._attributes())
        return alias

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        """Returns a copy with its gradient. Copies of views share a storage if they have the same
        memo."""
        if not self.is_leaf:
            raise errors.AutogradError("only leaves can be deep-copied: detach() first")
        if self.data_ptr():
            storage = self._copied_storage(memo)
            copied = storage.as_strided(self.shape, self.stride(), self.storage_offset())
        else:
            copied = self.clone()
        clone = copied.detach().as_subclass(type(self)).requires_grad_(self.requires_grad)
        memo[id(self)] = clone
        clone.__dict__.update(copy.deepcopy(self._attributes(), memo))
        if self.grad is not None:
            clone.grad = copy.deepcopy(self.grad, memo)
        return clone

    def _copied_storage(self, memo: dict[Any, Any]) -> Tensor:
        """Returns a 1-D copy of self's storage, which memo keeps for other tensors over the
        storage."""
        key = "storage", self._storage_data(), self.dtype
        if key not in memo:
            n = self._storage_bytes() // self.itemsize
            memo[key] = self.detach().as_strided((n,), (1,), 0).clone()
        return memo[key]

    # ---- indexing ----

    def __getitem__(self, key: Any) -> Tensor:
        if switch.users:
            found = intercepted(Tensor.__getitem__, locals())
            if found is not PLAIN:
                return found
        h = TensorHandle()
        if type(key) is int and INT_MIN <= key <= INT_MAX:
            i = SMALL[key] if -1 < key < 64 else c_int64(key)
            if tensor_select(local.ctx, self._as_parameter_, FIRST_DIM, i, byref(h)):
                fail()
            if type(self) is Tensor:
                t = object.__new__(Tensor)
                t._as_parameter_ = h
                return t
        else:
            try:
                index, n, keep = packed_index(key, self)  # keep: tensors that index points to
            except (IndexError, TypeError):
                return retried(Tensor.__getitem__, {"self": self, "key": key})
            if tensor_index_get(local.ctx, self._as_parameter_, index, n, byref(h)):
                fail()
            noted = positions.noted
            if noted is not None and (keep or noted.gives_view):
                found = noted.take(wrap(h))
                return found.as_subclass(type(self)) if keeps(self) else found
        return wrap(h).as_subclass(type(self)) if keeps(self) else wrap(h)

    def __setitem__(self, key: Any, value: Any) -> None:
        if switch.users:
            found = intercepted(Tensor.__setitem__, locals())
            if found is not PLAIN:
                return found
        index, n, keep = packed_index(key, writes=True)
        if not isinstance(value, Tensor):
            value = self._as_item(value)
        if tensor_index_set(local.ctx, self._as_parameter_, index, n, value):
            fail()

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    def _as_item(self, value: Any) -> Tensor:
        """Converts an assigned value to a tensor of self's dtype."""
        kind = type(value)
        if kind is float:
            packed = SCALAR.pack(3, 0, 0, value, 0.0)
        elif kind is int and INT_MIN <= value <= INT_MAX:
            packed = SCALAR.pack(2, 0, value, 0.0, 0.0)
        else:
            from ._create import as_tensor, scalar_tensor

            if isinstance(value, (bool, int, float, complex)):
                return scalar_tensor(value, dtype=self.dtype, device=CPU_DEVICE)
            return as_tensor(value, dtype=self.dtype, device=CPU_DEVICE)
        h = TensorHandle()
        dtype = self.dtype
        if dtype.itemsize == 2 and (kind is float or dtype.kind == "f" and abs(value) > 65504):
            dtype = FLOAT32  # of which 16 bits may become inf
        code = c_int32(dtype.code)
        if new_scalar(local.ctx, packed, code, byref(h)):
            fail()
        return wrap(h)

    def _become(self, other: Tensor) -> Self:
        """Replaces self by `other`, for in-place operators that change the shape. Returns self."""
        if self.requires_grad and self.is_leaf and quick.tt_grad_enabled(local.ctx):
            raise errors.AutogradError(
                "a leaf that requires a gradient cannot change its shape in place: "
                "do it under no_grad()"
            )
        self._as_parameter_ = other._as_parameter_
        if weakref.getweakrefcount(self):  # such as those of layers
            exchanged[0] += 1
        for told in on_exchange:
            told()
        return self


COMMON.add(Tensor)


def wrap(handle: TensorHandle) -> Tensor:
    """Returns a Tensor that owns this handle."""
    t = object.__new__(Tensor)
    t._as_parameter_ = handle
    return t


handle_of = TensorHandle.from_buffer_copy


def from_address(address: int) -> Tensor:
    """Returns a Tensor that owns the tt_tensor at address."""
    t = object.__new__(Tensor)
    t._as_parameter_ = handle_of(packed_address(address))
    return t


def tensor_result(name: str, *args: Any) -> Any:
    """Calls a C function whose last argument receives a tensor. Returns the tensor; None for
    NULL."""
    handle = result(TensorHandle, name, *args)
    return None if handle is None else wrap(handle)


def listed(name: str, *args: Any) -> tuple[Tensor, ...]:
    """Calls a C function that returns a list of tensors."""
    return tuple(map(from_address, filled(c_void_p, name, *args)))


def classed(x: Any, cls: type[Tensor]) -> Any:
    """Converts the plain tensors of a result to another class."""
    if type(x) is Tensor:
        return x.as_subclass(cls)
    if isinstance(x, tuple) and any(type(t) is Tensor for t in x):
        return tuple.__new__(type(x), (classed(t, cls) for t in x))
    return x


def borrow(address: int) -> Tensor:
    """Returns a Tensor for a borrowed handle."""
    quick.tt_tensor_retain(c_void_p(address))
    return from_address(address)


def rebuild(
    cls: type[Tensor], data: bytes, name: str, shape: tuple[int, ...], requires_grad: bool
) -> Tensor:
    """Unpickles a tensor: see Tensor.__reduce__."""
    from ._create import from_bytes

    return from_bytes(data, BY_NAME[name], shape).requires_grad_(requires_grad).as_subclass(cls)


# ---- to() ----


def named_type(name: str) -> tuple[str, Any]:
    """Returns (device, dtype) of a type name such as Tensor.type() returns, with prefix torch or
    tt."""
    library, _, rest = name.partition(".")
    device, _, kind = rest.rpartition(".")
    target = TYPE_NAMES.get(kind)
    if library not in ("torch", "tt") or device not in ("", "cuda") or target is None:
        raise ValueError(f"type(): '{name}' names no type of tensors, such as 'tt.FloatTensor'")
    return device or "cpu", target


def to_arguments(
    device: Any = None,
    dtype: Any = None,
    non_blocking: Any = False,
    copy: Any = False,
    *,
    memory_format: Any = preserve_format,
    other: Tensor | None = None,
) -> tuple[Any, Any, bool, Any]:
    """Returns what the arguments of Tensor.to mean: (dtype or None, device or None, copy, memory
    format)."""
    first = other if device is None else device
    if isinstance(first, (Tensor, DTYPE_CLASS, type)):
        if isinstance(dtype, bool):  # by position: to(first, non_blocking, copy)
            copy = copy or non_blocking
        elif dtype is not None:
            raise TypeError("to(): dtype is given twice")
        if isinstance(first, Tensor):
            device, dtype = first.device, first.dtype
        else:
            device, dtype = None, first
    return dtype, device, bool(copy), memory_format or preserve_format


from ._convert import is_number, keeps, operate, operate_swapped  # noqa: E402, F401
from ._hooks import HookHandle  # noqa: E402

# typing.get_type_hints evaluates hints among the names of a module, and Tensor's bases cannot
# import this one
for module in (_arithmetic, _tensor_facts, _interception, _layout, _memory, methods):
    vars(module)["Tensor"] = Tensor
