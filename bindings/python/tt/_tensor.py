"""Tensor: owner of one handle, its facts, conversions and Python's protocols. The operators come from _ops."""
import copy
import weakref
from ctypes import byref, c_char, c_int64, c_void_p, create_string_buffer
from struct import Struct
from types import SimpleNamespace

from ._kinds import kind_name
from . import _ops as ops
from . import errors
from ._index import INT_MAX, INT_MIN, packed_index
from ._facts import TensorHandle
from ._lib import call, fail, filled, lib, local, new, quick, result, without_buffer
from ._types import BY_NAME, contiguous_format, dtype, preserve_format
from ._types import float32 as FLOAT32

SCALAR = Struct("iiqdd")  # tt_scalar: kind, pad, i, re, im
tensor_select = lib.tt_select
SMALL = tuple(map(c_int64, range(65)))
FIRST_DIM = SMALL[0]


def number(kind, i, re, im):
    """Python's number of the parts of a tt_scalar."""
    return (None, bool(i), i, re, complex(re, im))[kind]


class Tensor(TensorHandle):
    """An n-dimensional array with gradients. Tensor(2, 3) has these sizes, Tensor(data) the values of data as float32; Tensor(tensor) is an
    alias, which subclasses use. Functions, methods and operators on a subclass give tensors of it, but of one with plain_results=True, as Parameter.
    """

    _keeps_class = False
    __array_priority__ = 1000  # NumPy leaves mixed operations to __radd__ and the like

    def __new__(cls, *data):
        if len(data) == 1 and isinstance(data[0], Tensor):
            return data[0].detach().as_subclass(cls)
        from ._create import tensor

        sizes = all(type(x) is int for x in data)
        return (ops.empty(data or (0,)) if sizes else tensor(*data, dtype=FLOAT32)).as_subclass(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __init_subclass__(cls, plain_results=False, **kwargs):
        super().__init_subclass__(**kwargs)
        without_buffer(cls)
        if Tensor in cls.__bases__ and not plain_results:
            from ._operators import keep_class

            keep_class(cls)
            cls._keeps_class = True

    def __buffer__(self, flags):
        raise TypeError("a tensor is no buffer: use x.numpy()")

    def as_subclass(self, cls):
        """The same tensor as an object of another class of tensors."""
        made = new(cls)
        made._address = self._address
        quick.tt_tensor_retain(made)
        return made

    # ---- facts ----

    nbytes = property(lambda self: self.numel() * self.itemsize)

    def untyped_storage(self):
        """The memory that self and its views share: data_ptr(), nbytes()."""
        return SimpleNamespace(data_ptr=self._storage_data, nbytes=self._storage_bytes)

    def is_contiguous(self, memory_format=contiguous_format):
        if memory_format.ndim:
            return (
                self.ndim == memory_format.ndim
                and self.permute(0, *range(2, self.ndim), 1).is_contiguous()
            )
        return self._is_contiguous()

    is_sparse = is_quantized = False

    def is_same_size(self, other):
        return self.shape == other.shape

    def get_device(self):
        """The device's index; -1 on the CPU."""
        return -1 if self.device.index is None else self.device.index

    # ---- gradients ----

    requires_grad = TensorHandle.requires_grad.setter(TensorHandle.requires_grad_)

    @property
    def grad(self):
        """The accumulated gradient or None; the same object while somebody holds it."""
        found = result(Tensor, "tt_tensor_grad", self)
        if found is None:
            return None
        kept = getattr(self, "_kept_grad", None)
        kept = kept and kept()
        if kept is not None and kept._address == found._address:
            return kept
        self._kept_grad = weakref.ref(found)
        return found

    @grad.setter
    def grad(self, value):
        self._set_grad(value)
        self._kept_grad = weakref.ref(value) if value is not None else None

    grad = grad.deleter(TensorHandle._set_grad)

    def detach_(self):
        """In place: self has no history from now on."""
        return self.requires_grad_(False) if self.is_leaf else self._become(self.detach())

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Adds the gradients of self to the .grad of the leaves it was computed from."""
        from .autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs)

    @property
    def grad_fn(self):
        """The recorded operator that made it; None of a leaf."""
        from .autograd.graph import Node

        return result(Node, "tt_tensor_grad_fn", self)

    data = property(lambda self: self.detach(), TensorHandle._set_data)

    # ---- conversions ----

    def to(self, *args, **kwargs):
        """to(dtype), to(device), to(device, dtype) or to(other), each with non_blocking, copy and memory_format."""
        target, where, copy, form = to_arguments(args, kwargs)
        return ops.to(self, dtype=target, device=where, copy=copy, memory_format=form)

    def contiguous(self, memory_format=contiguous_format):
        """self itself if its memory has this format, else a copy that has."""
        return (
            ops.contiguous(self)
            if memory_format is contiguous_format
            else ops.to(self, memory_format=memory_format)
        )

    def type(self, dtype=None, non_blocking=False):
        """Converted to a dtype; without one, the name of the type, such as "tt.FloatTensor"."""
        if dtype is not None:
            return self.to(dtype)
        return f"tt.{'' if self.is_cpu else self.device.type + '.'}{self.dtype.shown}Tensor"

    def type_as(self, other):
        return self.to(other.dtype)

    T = property(lambda self: self.permute(tuple(range(self.ndim))[::-1]))
    mT = property(lambda self: self.transpose(-2, -1))

    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
        from ._create import tensor

        return tensor(
            data,
            dtype=dtype or self.dtype,
            device=device or self.device,
            requires_grad=requires_grad,
        )

    # ---- values ----

    def item(self):
        """The value of a tensor of one element as a Python number."""
        found = create_string_buffer(32)
        call("tt_item", self, found)
        kind, _, i, re, im = SCALAR.unpack(found)
        return number(kind, i, re, im)

    def tolist(self):
        """The values as nested lists, a number if 0-dim."""
        if not self.ndim:
            return self.item()
        if not self.numel() or self.dtype.is_complex and self.ndim > 1:
            return [x.tolist() for x in self]
        source = self.to(FLOAT32) if self.dtype.kind == "f" and self.itemsize == 2 else self
        values = memoryview(source._bytes())
        if self.dtype.is_complex:
            values = values.cast(source.dtype.read)
            return list(map(complex, values[::2], values[1::2]))
        return values.cast(source.dtype.read, self.shape).tolist()

    def _bytes(self):
        """The elements in row-major order."""
        n = self.nbytes
        buffer = create_string_buffer(n or 1)
        call("tt_tensor_read", self, buffer, c_int64(n))
        return buffer.raw[:n]

    def __array__(self, dtype=None, copy=None):
        found = self.numpy()
        if copy is False and dtype is not None and found.dtype != dtype:
            raise ValueError(f"a copy is needed to convert {self.dtype} to {dtype}")
        return found.astype(dtype or found.dtype, copy=bool(copy))

    def __array_wrap__(self, array, context=None, return_scalar=False):
        """Results of NumPy's functions on tensors are tensors."""
        from ._create import as_tensor

        return as_tensor(array)

    def __bool__(self):
        n = self.numel()
        if n != 1:
            raise errors.InvalidArgumentError(
                f"Boolean value of Tensor with {'more than one value' if n else 'no values'} is ambiguous"
            )
        return bool(self.item())

    def __index__(self):
        if self.numel() != 1 or self.dtype.kind not in "ib":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of a 0-dim tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-dim tensor")
        return iter(ops.unbind(self, 0))

    def __reversed__(self):
        return ops.flip(self, 0) if self.ndim else self

    def __contains__(self, item):
        if not (isinstance(item, Tensor) or hasattr(item, "__abs__")):
            raise TypeError(
                f"Tensor.__contains__ takes a Tensor or a number, not {kind_name(item)}"
            )
        return bool((self == item).any())

    def __repr__(self):
        return (
            filled(c_char, "tt_tensor_print", self, cap=4096)
            .decode()
            .replace("dtype=", "dtype=tt.")
        )

    def __format__(self, spec):
        return (
            self.item().__format__(spec)
            if not self.ndim and not self.is_meta and type(self) is Tensor
            else object.__format__(self, spec)
        )

    __hash__ = object.__hash__  # __eq__ compares elements; a tensor is a key by identity

    def _attributes(self):
        return {name: value for name, value in self.__dict__.items() if name != "_kept_grad"}

    def __reduce__(self):
        return (
            rebuild,
            (
                type(self),
                self.detach().cpu()._bytes(),
                self.dtype.name,
                tuple(self.shape),
                self.requires_grad,
            ),
            self._attributes(),
        )

    def __setstate__(self, attributes):
        self.__dict__.update(attributes)

    def __copy__(self):
        """Another object over the same memory."""
        made = self.detach().as_subclass(type(self)).requires_grad_(self.requires_grad)
        made.__dict__.update(self._attributes())
        return made

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise errors.AutogradError("only leaves can be deep-copied: detach() first")
        copied = (
            self._copied_storage(memo).as_strided(self.shape, self.stride(), self.storage_offset())
            if self.data_ptr()
            else self.clone()
        )
        made = memo[id(self)] = (
            copied.detach().as_subclass(type(self)).requires_grad_(self.requires_grad)
        )
        made.__dict__.update(copy.deepcopy(self._attributes(), memo))
        if self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
        return made

    def _copied_storage(self, memo):
        """A copy of all elements that self's storage has; one for all tensors over it that are copied together."""
        key = "storage", self._storage_data(), self.dtype
        if key not in memo:
            n = self._storage_bytes() // self.itemsize
            memo[key] = self.detach().as_strided((n,), (1,), 0).clone()
        return memo[key]

    # ---- indexing ----

    def __getitem__(self, key):
        t = new(Tensor)
        if type(key) is int and INT_MIN <= key <= INT_MAX:
            if tensor_select(
                local.ctx, self, FIRST_DIM, SMALL[key] if 0 <= key < 64 else c_int64(key), byref(t)
            ):
                fail()
        else:
            index, n, keep = packed_index(key)  # keep: tensors that index points to
            call("tt_index_get", self, index, n, byref(t))
        return t

    def __setitem__(self, key, value):
        index, n, keep = packed_index(key)
        if not isinstance(value, Tensor):
            from ._create import as_tensor, scalar_tensor

            make = scalar_tensor if isinstance(value, (bool, int, float, complex)) else as_tensor
            value = make(value, dtype=self.dtype)
        call("tt_index_set", self, index, n, value)

    def _become(self, other):
        """In-place operators on the shape: self is `other`, a view of what it was, from now on."""
        if self.requires_grad and self.is_leaf and quick.tt_grad_enabled(local.ctx):
            raise errors.AutogradError(
                "a leaf that requires a gradient cannot change its shape in place: do it under no_grad()"
            )
        self._address, other._address = other._address, self._address
        return self


without_buffer(Tensor)


def wrap(address):
    """A Tensor that owns the handle at address."""
    t = new(Tensor)
    t._address = address
    return t


def listed(name, *args):
    """The tensors of a C function that gives a list."""
    return tuple(map(wrap, filled(c_void_p, name, *args)))


def classed(x, cls):
    """Plain tensors of a result as tensors of a class."""
    if type(x) is Tensor:
        return x.as_subclass(cls)
    if isinstance(x, tuple) and any(type(t) is Tensor for t in x):
        return tuple.__new__(type(x), (classed(t, cls) for t in x))
    return x


def borrow(address):
    """A Tensor for a handle that somebody else owns."""
    quick.tt_tensor_retain(c_void_p(address))
    return wrap(address)


def rebuild(cls, data, name, shape, requires_grad):
    from ._create import from_bytes

    return from_bytes(data, BY_NAME[name], shape).requires_grad_(requires_grad).as_subclass(cls)


# ---- to() ----


def to_arguments(args, kwargs):
    """(dtype or None, device or None, copy, memory format) of a call of Tensor.to."""
    first = args[0] if args else kwargs.pop("other", None)
    if isinstance(first, Tensor):
        args = first.device, first.dtype, *args[1:]
    elif isinstance(first, (dtype, type)):
        args = None, *args
    return to_parts(*args, **kwargs)


def to_parts(
    device=None, dtype=None, non_blocking=False, copy=False, *, memory_format=preserve_format
):
    return dtype, device, bool(copy), memory_format or preserve_format
