"""Storages: the memory that a tensor and its views share, as in torch.storage."""
from __future__ import annotations

import os
from typing import Any, Iterator

from ._class_name import class_name
from ._hints import Self
from ._tensor import Tensor
from ._types import BY_NAME
from ._types import device as Device
from ._types import dtype as DType
from .errors import UnimplementedError

__all__ = ["TypedStorage", "UntypedStorage"]


class Storage:
    """The base of storages. elements: all memory, as a tensor of one dimension."""

    def __init__(self, elements: Tensor) -> None:
        self.elements = elements.detach()

    @property
    def device(self) -> Device:
        return self.elements.device

    @property
    def is_cuda(self) -> bool:
        return self.elements.is_cuda

    def data_ptr(self) -> int:
        """Returns the address of the memory."""
        return self.elements._storage_data()

    def nbytes(self) -> int:
        """Returns the number of bytes."""
        return self.elements.nbytes

    def size(self) -> int:
        """Returns the number of elements."""
        return self.elements.numel()

    __len__ = size

    def element_size(self) -> int:
        """Returns the number of bytes of an element."""
        return self.elements.itemsize

    def is_shared(self) -> bool:
        """Returns whether the memory is shared between processes."""
        return self.elements.is_shared()

    def is_pinned(self, device: Device | str | None = None) -> bool:
        """Returns whether the memory is pinned."""
        return self.elements.is_pinned()

    def tolist(self) -> list[Any]:
        """Returns the elements as a list."""
        return self.elements.tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, i: int | slice) -> Any:
        """Returns an element as a number, or a part as a storage over the same memory."""
        if isinstance(i, slice):
            return type(self)(self.elements[i])
        if not -len(self) <= i < len(self):
            raise IndexError(f"index {i} is out of range for a storage of size {len(self)}")
        return self.elements[i].item()

    def __setitem__(self, i: int | slice, value: Any) -> None:
        self.elements[i] = value

    def fill_(self, value: Any) -> Self:
        """Writes a number to all elements. Returns self."""
        self.elements.fill_(value)
        return self

    def copy_(self, source: Storage, non_blocking: bool = False) -> Self:
        """Copies the elements of another storage of the same size. Returns self."""
        self.elements.copy_(source.elements)
        return self

    def resize_(self, size: int) -> Self:
        """Accepts the present size: the memory of tensors keeps its size."""
        if size != len(self):
            raise UnimplementedError(
                f"resize_: the storage has {len(self)} elements: tt cannot change that to {size}"
            )
        return self

    def share_memory_(self) -> Self:
        """Moves the memory to where other processes can share it. Returns self."""
        self.elements.share_memory_()
        return self

    def pin_memory(self, device: Device | str | None = None) -> Self:
        """Returns a copy in page-locked memory; self if it is there."""
        return type(self)(self.elements.pin_memory())

    def clone(self) -> Self:
        """Returns a copy."""
        return type(self)(self.elements.clone())

    def cpu(self) -> Self:
        """Returns a storage on the CPU: self if it is there."""
        return self if self.elements.is_cpu else type(self)(self.elements.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """Returns a copy on a CUDA device."""
        return type(self)(self.elements.cuda(device))

    def __repr__(self) -> str:
        name = f"{class_name(self)}({self._facts()}device={self.device})"
        return "\n".join([*(f" {x}" for x in self.tolist()), f"[{name} of size {len(self)}]"])

    def _facts(self) -> str:
        """Returns what the text says beside the device."""
        return ""


class UntypedStorage(Storage):
    """The bytes of a storage. UntypedStorage(n) has n bytes of memory of its own."""

    def __init__(self, size: int | Tensor = 0, *, device: Device | str | None = None) -> None:
        from ._ops import empty

        if isinstance(size, Tensor):
            super().__init__(size)
        else:
            super().__init__(empty(size, dtype=BY_NAME["uint8"], device=device))

    def untyped(self) -> UntypedStorage:
        """Returns self."""
        return self

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Maps the first nbytes of a file. shared: changes are written to the file, which is made
        as large; otherwise they are this storage's own."""
        import mmap

        from ._create import frombuffer
        from ._types import BY_NAME

        with open(filename, "r+b" if shared else "rb") as file:
            if shared and os.fstat(file.fileno()).st_size < nbytes:
                file.truncate(nbytes)
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            mapped = mmap.mmap(file.fileno(), nbytes, access=access)
        return cls(frombuffer(mapped, dtype=BY_NAME["uint8"]))


class TypedStorage(Storage):
    """The elements of a storage."""

    def _facts(self) -> str:
        return f"dtype={self.dtype}, "

    @property
    def dtype(self) -> DType:
        return self.elements.dtype

    def untyped(self) -> UntypedStorage:
        """Returns the same memory as bytes."""
        return untyped_storage(self.elements)

    def type(self, dtype: DType | None = None) -> Any:
        """Returns a name such as "tt.FloatStorage"; with a dtype, the elements converted to it."""
        if dtype is not None:
            return TypedStorage(self.elements.to(dtype))
        return f"{self.dtype.library}.{self.dtype.shown}Storage"

    def float(self) -> TypedStorage:
        """Returns the elements as float32."""
        return TypedStorage(self.elements.float())

    def double(self) -> TypedStorage:
        """Returns the elements as float64."""
        return TypedStorage(self.elements.double())

    def half(self) -> TypedStorage:
        """Returns the elements as float16."""
        return TypedStorage(self.elements.half())

    def long(self) -> TypedStorage:
        """Returns the elements as int64."""
        return TypedStorage(self.elements.long())


class OfOneDtype(type):
    """The class of FloatStorage and its like: a TypedStorage of the dtype is an instance."""

    dtype: DType

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


NAMED = {f"{kind.shown}Storage": kind for kind in BY_NAME.values()}


def class_of(kind: DType) -> type:
    """Returns the class of the storages of a dtype, such as FloatStorage."""

    def new(cls: Any, values: Any = 0) -> TypedStorage:
        from ._create import tensor
        from ._ops import empty

        if isinstance(values, int):
            return TypedStorage(empty(values, dtype=kind))
        return TypedStorage(whole(tensor(values, dtype=kind)))

    about = f"The elements of a storage as {kind}: of a number of elements, or with values."
    names = {"__new__": new, "__doc__": about, "__module__": "tt", "dtype": kind}
    return OfOneDtype(f"{kind.shown}Storage", (), names)


def __getattr__(name: str) -> Any:
    """Makes FloatStorage and its like when they are first used."""
    if name not in NAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = class_of(NAMED[name])
    return made


def whole(t: Tensor) -> Tensor:
    """Returns the complete elements of a tensor's storage as a tensor of one dimension."""
    return t.detach().as_strided((t._storage_bytes() // t.itemsize,), (1,), 0)


def untyped_storage(t: Tensor) -> UntypedStorage:
    """Returns the memory of a tensor as bytes."""
    return UntypedStorage(whole(t).view(BY_NAME["uint8"]))


def __dir__() -> list[str]:
    return __all__
